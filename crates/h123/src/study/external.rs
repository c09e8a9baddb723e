//! External clients of a run: other people's programs in the place of our own client.

use std::path::Path;

use drive::client::{ClientOutcome, Limits};
use drive::{ExternalSpec, Support};
use lab::{Lab, LabError, OwnFile};
use model::Cell;
use model::assignment::{Assignment, Target};
use model::plan::ClientGroup;
use model::sample::{FailureKind, Outcome};

use crate::study::run::{Study, lab_failed, tool_failed};

impl Study<'_> {
    /// Why the cell's clients cannot do it here, if they cannot.
    pub(crate) fn unsupported_by_clients(&self, cell: &Cell) -> Option<String> {
        let of_client = |group: &ClientGroup| {
            let found = self.clients.get(&group.client)?.probe(&self.program).ok()?;
            match found.support(group.variant) {
                Support::Supported => None,
                Support::Unsupported(reason) => Some(reason),
            }
        };
        cell.unsupported.clone().or_else(|| cell.clients.iter().find_map(of_client))
    }

    /// Makes the server's name known in the node, if it has files of its own: most clients cannot be told an address for a
    /// name.
    fn name_server(lab: &Lab, target: &Target) -> Result<bool, LabError> {
        if !lab.is_emulated() {
            return Ok(false);
        }
        let (address, name) = (target.address.ip(), &target.server_name);
        let text = format!("127.0.0.1 localhost\n{address} {name}\n");
        lab.client().cover_files(vec![OwnFile { path: "/etc/hosts".into(), text }])?;
        Ok(true)
    }

    /// Runs a group's external client to its end.
    ///
    /// # Errors
    /// The run's outcome where the tool itself failed.
    pub(crate) fn drive_external(
        &self,
        lab: &Lab,
        group: &ClientGroup,
        assignment: &Assignment,
        limits: &Limits,
        logs: &Path,
    ) -> Result<ClientOutcome, Outcome> {
        let Some(client) = self.clients.get(&group.client) else {
            let reason = format!("there is no client `{}`", group.client);
            return Err(Outcome::failed(FailureKind::Client, reason));
        };
        let spec = ExternalSpec {
            folder: &logs.join("client"),
            log: &logs.join("client.log"),
            tool: &self.program,
            has_names: Self::name_server(lab, &assignment.target).map_err(|error| lab_failed(&error))?,
            stop: self.stop,
        };
        client
            .run(lab.client(), assignment, limits, &spec)
            .map_err(|error| tool_failed(FailureKind::Client, &error))
    }
}
