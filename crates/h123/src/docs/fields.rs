//! Tables of the fields of JSON files: the fields of the types in the source, with their documentation.

use std::fs;

use super::root;
use super::tables::{code, table};

/// The types, each with its source file; the table is named `fields TYPE`.
const TYPES: &[(&str, &[&str])] = &[
    ("model/src/plan.rs", &["Plan", "Repetition", "PlannedTopology", "Cell", "PlannedRun"]),
    ("model/src/plan/group.rs", &["ClientGroup"]),
    ("model/src/plan/chain.rs", &["ServerChain"]),
    ("store/src/environment.rs", &["Environment"]),
    (
        "analysis/src/summary.rs",
        &[
            "Summary",
            "RepetitionProgress",
            "CellSummary",
            "MetricSummary",
            "CheckResult",
            "ClaimResult",
            "Comparison",
        ],
    ),
];

/// Every table with its name.
pub(super) fn all() -> impl Iterator<Item = (String, String)> {
    TYPES.iter().flat_map(|(file, types)| {
        let source = fs::read_to_string(root().join("crates").join(file)).unwrap();
        let tables: Vec<_> = types
            .iter()
            .map(|name| {
                let rows = fields(&source, name).into_iter().map(|(field, meaning)| [code(&field), meaning]);
                (format!("fields {name}"), table(["field", "meaning"], rows))
            })
            .collect();
        tables
    })
}

/// The public fields of a type, each with its documentation in one line.
fn fields(source: &str, name: &str) -> Vec<(String, String)> {
    let (_, body) = source.split_once(&format!("pub struct {name} {{\n")).expect("the file has the type");
    let (body, _) = body.split_once("\n}\n").expect("the type has an end");
    let (mut meaning, mut may_be_absent) = (String::new(), false);
    let mut fields = Vec::new();
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            meaning += &format!(" {text}");
        } else if line.starts_with("#[serde") {
            may_be_absent |= line.contains("skip_serializing_if");
        } else if let Some((field, kind)) = line.strip_prefix("pub ").and_then(|line| line.split_once(": ")) {
            fields.push((field.to_owned(), for_readers(&meaning, kind, may_be_absent)));
            (meaning, may_be_absent) = (String::new(), false);
        }
    }
    fields
}

/// A field's documentation for readers of the JSON: without links, and with what a missing value looks like.
fn for_readers(documentation: &str, kind: &str, may_be_absent: bool) -> String {
    let nothing = if may_be_absent { "absent" } else { "null" };
    let says_when = documentation.contains("`None`");
    let mut meaning = documentation.replace("`None`", nothing).replace("[`", "`").replace("`]", "`");
    meaning = meaning.trim().trim_end_matches('.').to_owned();
    if !says_when && (may_be_absent || kind.starts_with("Option<")) {
        meaning += &format!("; may be {nothing}");
    }
    meaning
}

#[test]
fn fields_have_their_documentation() {
    let source = "pub struct A {\n    /// One\n    /// line.\n    pub a: u32,\n    /// A [`Link`].\n    \
        #[serde(default, skip_serializing_if = \"Option::is_none\")]\n    pub b: Option<u8>,\n    \
        /// Two; `None` for none.\n    pub c: Option<u8>,\n}\n";
    let meanings: Vec<_> = fields(source, "A").into_iter().map(|(_, meaning)| meaning).collect();
    assert_eq!(meanings, ["One line", "A `Link`; may be absent", "Two; null for none"]);
}
