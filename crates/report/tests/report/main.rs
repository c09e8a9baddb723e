//! The report from fabricated summaries: structure, snapshots, hostile strings.
#![expect(clippy::cast_possible_truncation, reason = "made-up numbers in a test")]

mod fabricated;

/// Writes the reports into `$H123_REPORT_DUMP`, to look at.
#[test]
#[ignore = "writes files for a person to look at"]
fn dump() {
    let folder = std::path::PathBuf::from(std::env::var("H123_REPORT_DUMP").unwrap());
    for (name, fabricated) in [("well", fabricated::all_well()), ("troubled", fabricated::troubled())] {
        let report = report::render(&fabricated.input()).unwrap();
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("report.html"), &report.html).unwrap();
        std::fs::write(folder.join("terminal.txt"), &report.terminal).unwrap();
        for figure in &report.figures {
            std::fs::write(folder.join(format!("{}.svg", figure.name)), &figure.svg).unwrap();
        }
    }
}
