//! What the fuzz targets share.

/// Gives `data` to the engine's target of this name.
pub fn run(name: &str, data: &[u8]) {
    let target = engine::fuzz_targets::TARGETS.iter().find(|(known, _)| *known == name);
    target.expect("a target of the engine").1(data);
}
