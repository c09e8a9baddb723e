//! What the fuzz targets share.

use std::sync::OnceLock;
use std::time::Instant;

/// Gives `data` to the target of this name.
pub fn run(name: &str, data: &[u8]) {
    static BASE: OnceLock<Instant> = OnceLock::new();
    let of_engine = engine::fuzz_targets::TARGETS.iter().find(|(known, _)| *known == name);
    if let Some((_, target)) = of_engine {
        return target(data, *BASE.get_or_init(Instant::now));
    }
    let of_workload = workload::fuzz_targets::TARGETS.iter().find(|(known, _)| *known == name);
    of_workload.expect("a target of the engine or of the workloads").1(data);
}
