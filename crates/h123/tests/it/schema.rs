//! `docs/summary.schema.json` against real summaries: only the part of JSON Schema that the
//! file uses.

use serde_json::{Map, Value};

/// Fails unless the value matches the schema.
pub(crate) fn assert_valid(summary: &Value) {
    let faults = faults_of(summary);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn faults_of(summary: &Value) -> Vec<String> {
    let text = std::fs::read_to_string(crate::tool::repository().join("docs/summary.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let mut faults = Vec::new();
    check(&schema, &schema, summary, "", &mut faults);
    faults
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let Value::Object(rules) = schema else { panic!("found {schema} in the schema, expected an object") };
    for (rule, wanted) in rules {
        let is_kept = match rule.as_str() {
            "$schema" | "$defs" | "title" | "description" | "additionalProperties" => true,
            "$ref" => {
                let name = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                check(root, root.pointer(name).unwrap(), value, at, faults);
                true
            }
            "type" => wanted
                .as_array()
                .map_or_else(|| is_of(wanted, value), |types| types.iter().any(|t| is_of(t, value))),
            "const" => wanted == value,
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_some_and(|number| number >= wanted.as_f64().unwrap()),
            "required" => {
                wanted.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some())
            }
            "properties" => {
                properties(root, rules, value, at, faults);
                true
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, wanted, item, &format!("{at}[{index}]"), faults);
                }
                true
            }
            "oneOf" => {
                let fits = |schema: &&Value| {
                    let mut own = Vec::new();
                    check(root, schema, value, at, &mut own);
                    own.is_empty()
                };
                wanted.as_array().unwrap().iter().filter(fits).count() == 1
            }
            other => panic!("found `{other}` in the schema, which this test does not know"),
        };
        if !is_kept {
            faults.push(format!("{at}: found {value}, expected {rule} {wanted}"));
        }
    }
    if !rules.contains_key("properties") && rules.contains_key("additionalProperties") {
        properties(root, rules, value, at, faults);
    }
}

fn properties(root: &Value, rules: &Map<String, Value>, value: &Value, at: &str, faults: &mut Vec<String>) {
    let known = rules.get("properties").and_then(Value::as_object);
    for (key, own) in value.as_object().into_iter().flatten() {
        let place = format!("{at}.{key}");
        match (known.and_then(|known| known.get(key)), rules.get("additionalProperties")) {
            (Some(schema), _) => check(root, schema, own, &place, faults),
            (None, Some(Value::Object(schema))) => {
                check(root, &Value::Object(schema.clone()), own, &place, faults);
            }
            (None, _) => faults.push(format!("{place}: found a key that the schema does not know")),
        }
    }
}

fn is_of(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("found the type {other} in the schema"),
    }
}

#[test]
fn the_schema_rejects_other_documents() {
    let level = serde_json::json!({ "factor": "variant", "value": "h2" });
    let good = serde_json::json!({
        "version": 4, "study": "s", "question": "q", "metric": "m", "statistic": "median", "baseline": level, "margin_share": 0.03,
        "runs_planned": 1, "runs_stored": 1, "cells": [], "comparisons": [],
    });
    assert_valid(&good);
    for (key, value) in [
        ("version", 1.into()),
        ("cells", serde_json::json!([{}])),
        ("surplus", 1.into()),
        ("runs_stored", (-1).into()),
        ("baseline", serde_json::json!({ "factor": "variant" })),
    ] {
        let mut bad = good.clone();
        bad[key] = value;
        assert!(!faults_of(&bad).is_empty(), "{key}");
    }
}
