//! `h123 schema`: a JSON Schema of study files, for editors, from the declarations of the keys.

use anyhow::Result;
use clap::Args;
use model::reader::TableKeys;
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::terminal::print;

/// Print a JSON Schema of study files, with which editors complete and check keys
#[derive(Args, Debug)]
#[command(after_help = "Example:
  h123 schema > study.schema.json

An editor with a TOML language server (taplo) uses it if the study begins with the line \
`#:schema ./study.schema.json`.")]
pub(crate) struct SchemaArgs {}

/// Prints the schema.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn run(_: &SchemaArgs) -> Result<Exit> {
    print(&serde_json::to_string_pretty(&schema())?)?;
    Ok(Exit::Done)
}

fn schema() -> Value {
    let mut root = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A study of h123",
        "type": "object",
        "additionalProperties": false,
    });
    for table in model::study::KEYS {
        // Keys that only some kinds of a table have are optional in it.
        let (place, kind) =
            table.table.split_once(" with ").map_or((table.table, ""), |(place, kind)| (place, kind));
        // Values such as `start`, which several tables have, are texts or tables there.
        let is_value =
            place != "the study" && !place.starts_with('[') && root["properties"].get(place).is_none();
        if is_value {
            continue;
        }
        let segments: Vec<&str> = match place {
            "the study" => Vec::new(),
            place => place.trim_matches(['[', ']']).split('.').collect(),
        };
        add(&mut root, &segments, place.starts_with("[["), table, kind.is_empty());
    }
    // Sweeps are paths of keys, with a list or a range.
    root["properties"]["matrix"]["additionalProperties"] = json!({ "type": ["array", "string"] });
    let columns = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    root["properties"]["csv"]["additionalProperties"] = columns;
    // `[full]` has the keys of the study, and requires none.
    let mut full =
        json!({ "type": "object", "additionalProperties": false, "properties": root["properties"] });
    full["description"] = root["properties"]["full"]["description"].take();
    remove_required(&mut full);
    root["properties"]["full"] = full;
    root
}

fn remove_required(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        // A key may have this name, too; its schema is an object.
        if object.get("required").is_some_and(Value::is_array) {
            object.remove("required");
        }
        object.values_mut().for_each(remove_required);
    }
}

/// Adds the keys of a table to the schema of the object at this place.
fn add(object: &mut Value, segments: &[&str], is_list: bool, table: &TableKeys, is_whole: bool) {
    let Some((first, rest)) = segments.split_first() else {
        for key in table.keys {
            let property = property(key.takes, key.meaning, key.default, key.example);
            // A table that other keys describe keeps its own properties.
            let known = entry(entry(object, "properties"), key.name);
            merge(known, property);
        }
        let required = table.keys.iter().filter(|key| is_whole && key.default == "required");
        let required: Vec<&str> = required.map(|key| key.name).collect();
        if !required.is_empty() {
            object["required"] = json!(required);
        }
        return;
    };
    let mut next = match *first {
        "NAME" => entry(object, "additionalProperties"),
        name => entry(entry(object, "properties"), name),
    };
    if rest.is_empty() && is_list {
        next = entry(next, "items");
    }
    if next.get("type").is_none() {
        next["type"] = json!("object");
    }
    if next.get("additionalProperties").is_none() && rest.first() != Some(&"NAME") {
        next["additionalProperties"] = json!(false);
    }
    add(next, rest, is_list, table, is_whole);
}

/// A member that is an object.
fn entry<'v>(value: &'v mut Value, name: &str) -> &'v mut Value {
    if !value[name].is_object() {
        value[name] = Value::Object(Map::new());
    }
    &mut value[name]
}

fn merge(known: &mut Value, property: Value) {
    if let (Some(known), Value::Object(property)) = (known.as_object_mut(), property) {
        for (name, value) in property {
            known.entry(name).or_insert(value);
        }
    }
}

/// The schema of one key.
fn property(takes: &str, meaning: &str, default: &str, example: &str) -> Value {
    let mut property = json!({ "description": format!("{meaning} Default: {default}. Example: {example}") });
    let kind = match takes {
        "whole number" => json!("integer"),
        "number" => json!("number"),
        "boolean" => json!("boolean"),
        takes if takes.contains(" or ") => Value::Null,
        takes if takes.starts_with("list") || takes.contains("`[[") => json!("array"),
        takes if takes.starts_with("table") => json!("object"),
        _ => json!("string"),
    };
    if !kind.is_null() {
        property["type"] = kind;
    }
    property
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Kind;

    /// The schema of the table with this header.
    fn table<'s>(schema: &'s Value, header: &str) -> &'s Value {
        let is_list = header.starts_with("[[");
        let mut at = schema;
        for name in header.trim_matches(['[', ']']).split('.').filter(|name| !name.is_empty()) {
            at = match &at["properties"][name] {
                Value::Null => &at["additionalProperties"],
                known => known,
            };
        }
        if is_list { &at["items"] } else { at }
    }

    /// Checks that every key of a study's value is in its schema, and counts them.
    fn check(schema: &Value, value: &toml::Value, place: &str, count: &mut usize) {
        let place_of = |key: &str| format!("{place} {key}");
        match value {
            toml::Value::Table(table) if schema["properties"].is_object() || schema["type"] == "object" => {
                for (key, value) in table {
                    let known = match &schema["properties"][key] {
                        Value::Null => &schema["additionalProperties"],
                        known => known,
                    };
                    // Settings of a server are declared by its description, levels by the matrix.
                    if schema["properties"].is_object() || schema.get("additionalProperties").is_some() {
                        assert!(known.is_object(), "{}: {schema:#}", place_of(key));
                        *count += 1;
                        check(known, value, &place_of(key), count);
                    }
                }
            }
            toml::Value::Array(items) if schema["type"] == "array" && schema["items"].is_object() => {
                items.iter().for_each(|item| check(&schema["items"], item, place, count));
            }
            _ => {}
        }
    }

    #[test]
    fn every_built_in_study_has_only_keys_of_the_schema() {
        let schema = schema();
        let mut count = 0;
        for name in Kind::Study.names() {
            let files = Kind::Study.files(&name).unwrap();
            let study: toml::Table = files[0].text.parse().unwrap();
            check(&schema, &toml::Value::Table(study), &name, &mut count);
        }
        assert!(count > 300, "{count} keys");
    }

    #[test]
    fn an_unknown_key_and_a_missing_one_are_faults() {
        let schema = schema();
        assert_eq!(schema["additionalProperties"], false);
        assert!(schema["required"].as_array().unwrap().contains(&json!("question")));
        assert_eq!(table(&schema, "[workload.x]")["additionalProperties"], false);
        assert!(table(&schema, "[workload.x]")["properties"]["requests_per_connection"].is_object());
        assert!(table(&schema, "[[group]]")["properties"]["start"].is_object());
        assert!(schema["properties"].get("start").is_none(), "`start` is no key of the study");
        let sweep = &table(&schema, "[matrix]")["additionalProperties"];
        assert_eq!(*sweep, json!({ "type": ["array", "string"] }), "any path can be a factor");
        assert_eq!(schema["properties"]["runs"]["type"], "integer");
        assert_eq!(schema["properties"]["claim"]["type"], "array");
        assert_eq!(schema["properties"]["workload"]["type"], "object");
        let full = &schema["properties"]["full"];
        assert_eq!(full["properties"]["runs"]["type"], "integer");
        assert!(full.get("required").is_none() && full["properties"]["matrix"].get("required").is_none());
    }
}
