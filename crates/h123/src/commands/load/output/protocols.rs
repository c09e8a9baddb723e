//! What protocols did beyond requests: kinds of handshake, early data, pushes, moves.

use model::assignment::ClientReport;
use model::tally::{FailedMigration, ProtocolCounts, Security};
use model::units::format_bytes;
use serde_json::{Value, json};

use super::summary::{Asked, Phases, as_f64};

/// The numbers of all connections, warm-up included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Protocols {
    pub(crate) sums: ProtocolCounts,
    pub(crate) security: Vec<Security>,
    pub(crate) failed_migrations: Vec<FailedMigration>,
}

impl Protocols {
    /// Adds what a client said of its connections.
    pub(super) fn client(&mut self, client: &ClientReport) {
        self.sums.add(client.further_connections.protocols);
        for found in &client.further_connections.security {
            let is = |known: &&mut Security| {
                **known == Security { connections: known.connections, ..found.clone() }
            };
            match self.security.iter_mut().find(is) {
                Some(known) => known.connections += found.connections,
                None => self.security.push(found.clone()),
            }
        }
        for found in &client.failed_migrations {
            match self.failed_migrations.iter_mut().find(|known| known.reason == found.reason) {
                Some(known) => known.connections += found.connections,
                None => self.failed_migrations.push(found.clone()),
            }
        }
    }

    /// Lines for people: name and text.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let sums = &self.sums;
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let mut lines: Vec<(&'static str, String)> = Vec::new();
        for security in &self.security {
            lines.push(("TLS", format!("{} × {}", security.connections, agreed(security))));
        }
        if sums.early_accepted + sums.early_rejected > 0 {
            let again = match sums.early_rejected {
                0 => String::new(),
                rejected => format!(" · rejected on {rejected}, and sent again"),
            };
            let (requests, accepted) = (sums.early_requests, sums.early_accepted);
            let text = format!(
                "{requests} request{} · accepted on {accepted} connection{}{again}",
                plural(requests),
                plural(accepted)
            );
            lines.push(("early data", text));
        }
        if sums.pushed + sums.pushed_broken > 0 {
            let bytes = format_bytes(as_f64(sums.pushed_bytes));
            let broken = match sums.pushed_broken {
                0 => String::new(),
                broken => format!(" · {broken} promised and not whole"),
            };
            lines.push((
                "pushed",
                format!("{} response{}, {bytes} of bodies{broken}", sums.pushed, plural(sums.pushed)),
            ));
        }
        if sums.migrated > 0 || !self.failed_migrations.is_empty() {
            let text = format!(
                "{} connection{} to a new local address · {} heard from the server there",
                sums.migrated,
                plural(sums.migrated),
                sums.moved_answered
            );
            lines.push(("moved", text));
        }
        for failed_migrations in &self.failed_migrations {
            lines.push((
                "not moved",
                format!("{} × {}", failed_migrations.connections, failed_migrations.reason),
            ));
        }
        lines
    }

    /// What a reader has to know before believing the numbers.
    pub(crate) fn warnings(&self, asked: &Asked, phases: &Phases) -> Vec<String> {
        let silent = self.sums.migrated.saturating_sub(self.sums.moved_answered);
        let mut warnings = Vec::new();
        if silent > 0 {
            warnings.push(format!(
                "{silent} of {} connections that moved never heard from the server at the new address: it may not \
                 let clients migrate, or the test ended before",
                self.sums.migrated
            ));
        }
        if asked.migrates && self.sums.migrated == 0 {
            warnings.push(
                "no connection migrated: none was open at --migrate-at, or the test had ended".to_owned(),
            );
        }
        if asked.resumes && phases.resumed.count() + phases.early.count() == 0 {
            warnings.push(
                "no session was resumed: no connection came after another (see --requests-per-connection), or the \
                 server gave no ticket or took none"
                    .to_owned(),
            );
        } else if asked.early_data && self.sums.early_accepted == 0 {
            warnings.push(
                "no early data was accepted: the server does not allow it, or no request could be sent so"
                    .to_owned(),
            );
        }
        warnings
    }

    /// Keys of the JSON, each with its value.
    pub(crate) fn json(&self, phases: &Phases) -> [(&'static str, Value); 5] {
        let sums = &self.sums;
        let security = self.security.iter().map(|is| {
            json!({
                "tls_version": is.tls_version, "cipher_suite": is.cipher_suite,
                "key_exchange": is.key_exchange, "connections": is.connections,
            })
        });
        let failed_migrations = self
            .failed_migrations
            .iter()
            .map(|is| json!({ "reason": is.reason, "connections": is.connections }));
        [
            (
                "handshakes",
                json!({
                    "cold": phases.handshake.count(), "resumed": phases.resumed.count(),
                    "early": phases.early.count(),
                }),
            ),
            (
                "early_data",
                json!({
                    "requests": sums.early_requests, "accepted": sums.early_accepted,
                    "rejected": sums.early_rejected,
                }),
            ),
            ("security", security.collect()),
            (
                "push",
                json!({
                    "responses": sums.pushed, "broken": sums.pushed_broken, "body_bytes": sums.pushed_bytes,
                }),
            ),
            (
                "migration",
                json!({
                    "moved": sums.migrated, "answered": sums.moved_answered,
                    "failed_migrations": failed_migrations.collect::<Vec<_>>(),
                }),
            ),
        ]
    }

    /// Lines of the table: name and count.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 8] {
        let sums = &self.sums;
        [
            ("early_accepted", sums.early_accepted),
            ("early_rejected", sums.early_rejected),
            ("early_requests", sums.early_requests),
            ("pushed", sums.pushed),
            ("pushed_broken", sums.pushed_broken),
            ("moved", sums.migrated),
            ("migrated_answered", sums.moved_answered),
            ("failed_migrations", self.failed_migrations.iter().map(|is| is.connections).sum()),
        ]
    }
}

fn agreed(security: &Security) -> String {
    let parts = [&security.tls_version, &security.cipher_suite, &security.key_exchange];
    parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(" ")
}
