//! The unchanged commands of the page on data: DuckDB and pandas compute the same numbers as h123.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::quick;
use crate::tool::{Ended, H123, repository, summary};

/// Runs every block of the page in a result's folder; what the first two found, as JSON.
const HARNESS: &str = r#"
import contextlib, io, json, re, sys
import duckdb
page = open(sys.argv[1]).read()
sql = [duckdb.sql(code) for code in re.findall(r"```sql\n(.*?)```", page, re.S)]
found = {"duckdb": dict(sql[0].fetchall()), "columns": len(sql[1].fetchall())}
spaces = []
for code in re.findall(r"```python\n(.*?)```", page, re.S):
    spaces.append({})
    exec(code, spaces[-1])
found["pandas"] = spaces[0]["loads"].to_dict()
found["meanings"] = spaces[1]["meanings"]
found["medians"] = spaces[2]["medians"].value.tolist()
json.dump(found, sys.stdout)
"#;

/// The Python that `scripts/install-test-needs.sh` furnishes, in the build folder.
pub(crate) fn python() -> PathBuf {
    let place = Path::new(H123).ancestors().map(|folder| folder.join("data-venv/bin/python"));
    place.into_iter().find(|path| path.exists()).unwrap_or_else(|| {
        panic!("found no data-venv/bin/python above {H123}, expected DuckDB and pandas: run `make needs`")
    })
}

fn numbers(found: &Value) -> BTreeMap<String, f64> {
    serde_json::from_value(found.clone()).unwrap_or_else(|error| panic!("{error}: {found}"))
}

#[test]
fn duckdb_and_pandas_compute_the_same_numbers() {
    let output = Command::new(python())
        .args(["-c", HARNESS])
        .arg(repository().join("docs/data.md"))
        .current_dir(quick::result())
        .output()
        .unwrap();
    let found: Value = serde_json::from_str(&Ended::of(output).expect(0).stdout).unwrap();
    let (duckdb, pandas) = (numbers(&found["duckdb"]), numbers(&found["pandas"]));
    let summary = summary(quick::result());
    for cell in summary["cells"].as_array().unwrap() {
        let levels = cell["levels"].as_array().unwrap().iter().map(|level| level["value"].as_str().unwrap());
        let name = levels.collect::<Vec<_>>().join(" ");
        let own_ms = cell["metrics"]["page_load_time"]["median"]["value"].as_f64().unwrap() / 1e6;
        for (tool, loads) in [("DuckDB", &duckdb), ("pandas", &pandas)] {
            let theirs_ms = loads.get(&name).unwrap_or_else(|| panic!("{tool} has no {name}: {loads:?}"));
            assert!((theirs_ms - own_ms).abs() < 0.006, "{name}: {tool} {theirs_ms} ms, h123 {own_ms} ms");
        }
    }
    let meanings = found["meanings"].as_object().unwrap();
    assert_eq!(meanings["h123.column.done_ns"].as_str().unwrap().split(' ').next_back(), Some("[ns]"));
    let columns = meanings.keys().filter(|key| key.starts_with("h123.column.")).count();
    assert!(columns >= 20 && found["columns"] == columns, "{columns} columns, {}", found["columns"]);
    assert_eq!(found["medians"].as_array().unwrap().len(), summary["cells"].as_array().unwrap().len());
}
