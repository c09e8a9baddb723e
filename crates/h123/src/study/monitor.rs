//! What watches a run: the lab's monitor on the nodes of those who are measured, by the run's clock.

use std::time::Duration;

use lab::{Lab, Monitor, MonitorSpec, Node};
use model::assignment::ClockReference;
use model::{Cell, Outcome, Reading};

use crate::study::run::{Study, lab_failed};

/// The monitor of one run; none where the study has it off.
pub(crate) struct Watch(Option<Monitor>);

impl Watch {
    /// Opens what will be read in the nodes of clients and servers.
    ///
    /// # Errors
    /// The run's outcome: the lab refused.
    pub(crate) fn prepare(study: &Study<'_>, lab: &Lab, cell: &Cell) -> Result<Watch, Outcome> {
        let Some(period_ns) = study.plan.monitor.period_ns() else { return Ok(Watch(None)) };
        let mut nodes: Vec<&Node> = vec![lab.client(), lab.server()];
        let fronts = cell.chains.iter().map(|chain| &chain.node);
        let backs = cell.chains.iter().filter_map(|chain| chain.back.as_ref()).map(|back| &back.node);
        let named = cell.clients.iter().map(|group| &group.node).chain(fronts).chain(backs);
        for node in named.filter_map(|name| lab.node(name)) {
            if nodes.iter().all(|known| known.name() != node.name()) {
                nodes.push(node);
            }
        }
        let period = Duration::from_nanos(period_ns);
        let spec = MonitorSpec { nodes: &nodes, period, cpu: study.cores.monitor };
        Ok(Watch(Some(Monitor::prepare(spec).map_err(|error| lab_failed(&error))?)))
    }

    /// Reads all for the first time, just after the run's begin.
    ///
    /// # Errors
    /// The run's outcome: the monitor failed.
    pub(crate) fn begin(&self, clock: &ClockReference) -> Result<(), Outcome> {
        let Some(monitor) = &self.0 else { return Ok(()) };
        monitor.begin(clock.run_start_ns).map_err(|error| lab_failed(&error))
    }

    /// Reads all for the last time.
    ///
    /// # Errors
    /// The run's outcome: the monitor failed.
    pub(crate) fn finish(self) -> Result<Vec<Reading>, Outcome> {
        let Some(monitor) = self.0 else { return Ok(Vec::new()) };
        monitor.finish().map_err(|error| lab_failed(&error))
    }
}
