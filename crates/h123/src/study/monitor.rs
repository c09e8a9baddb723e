//! The monitor of a run, on the nodes of the measured clients and servers, by the run's clock.

use std::time::Duration;

use lab::{Lab, Monitor, MonitorSpec, Node};
use model::assignment::ClockReference;
use model::{Cell, Outcome, Reading};

use crate::study::Study;

/// The monitor of one run; `None` where the study turned it off.
pub(crate) struct RunMonitor(Option<Monitor>);

impl RunMonitor {
    /// Opens the files that the monitor reads in the nodes of clients and servers.
    ///
    /// # Errors
    /// The run's outcome: the lab refused.
    pub(crate) fn prepare(study: &Study<'_>, lab: &Lab, cell: &Cell) -> Result<RunMonitor, Outcome> {
        let Some(period_ns) = study.plan.monitor.period_ns() else { return Ok(RunMonitor(None)) };
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
        Ok(RunMonitor(Some(Monitor::prepare(spec)?)))
    }

    /// Takes the first reading, just after the run's start.
    ///
    /// # Errors
    /// The run's outcome: the monitor failed.
    pub(crate) fn begin(&self, clock: &ClockReference) -> Result<(), Outcome> {
        let Some(monitor) = &self.0 else { return Ok(()) };
        Ok(monitor.begin(clock.run_start_ns)?)
    }

    /// Takes the last reading and returns all of them.
    ///
    /// # Errors
    /// The run's outcome: the monitor failed.
    pub(crate) fn finish(self) -> Result<Vec<Reading>, Outcome> {
        let Some(monitor) = self.0 else { return Ok(Vec::new()) };
        Ok(monitor.finish()?)
    }
}
