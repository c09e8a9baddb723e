//! The monitor of a run, on the nodes of the measured clients and servers, by the run's clock.

use std::time::Duration;

use lab::{Lab, Monitor, MonitorSpec, Node};
use model::{Cell, Outcome};

use crate::study::Study;

impl Study<'_> {
    /// Opens the files that the monitor reads in the nodes of clients and servers; `None` where the study
    /// turned it off.
    ///
    /// # Errors
    /// The run's outcome: the lab refused.
    pub(crate) fn prepare_monitor(&self, lab: &Lab, cells: &[Cell]) -> Result<Option<Monitor>, Outcome> {
        let Some(period_ns) = self.plan.monitor.period_ns() else { return Ok(None) };
        let mut nodes: Vec<&Node> = vec![lab.client(), lab.server()];
        let named = cells.iter().flat_map(|cell| {
            let backs = cell.chain.backs.iter().map(|back| &back.node);
            [&cell.group.node, &cell.chain.node].into_iter().chain(backs)
        });
        for node in named.filter_map(|name| lab.node(name)) {
            if nodes.iter().all(|known| known.name() != node.name()) {
                nodes.push(node);
            }
        }
        let period = Duration::from_nanos(period_ns);
        let spec = MonitorSpec { nodes: &nodes, period, cpu: self.cores.monitor };
        Ok(Some(Monitor::prepare(spec)?))
    }
}
