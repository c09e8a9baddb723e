//! Changes of a TOML document before it is read, so that the reader treats them like values of the file.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// A value with its place.
type Entry<'f> = Spanned<DeValue<'f>>;

/// A table below the root.
pub(crate) fn table<'d, 'a>(document: &'d DeTable<'a>, key: &str) -> Option<&'d DeTable<'a>> {
    document.get(key)?.get_ref().as_table()
}

/// A table below the root, to change it.
pub(crate) fn table_mut<'d, 'a>(document: &'d mut DeTable<'a>, key: &str) -> Option<&'d mut DeTable<'a>> {
    match document.get_mut(key)?.get_mut() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

/// Keeps these keys of a table only, in their order.
pub(crate) fn retain(table: &mut DeTable<'_>, is_kept: impl Fn(&str) -> bool) {
    let entries = std::mem::take(table).into_iter();
    entries.filter(|(key, _)| is_kept(key.get_ref())).for_each(|(key, value)| drop(table.insert(key, value)));
}

/// A string, number or boolean as text, and as TOML; `None` for anything else.
pub(crate) fn scalar(value: &DeValue<'_>) -> Option<(String, String)> {
    let plain = |text: String| Some((text.clone(), text));
    match value {
        DeValue::String(text) => Some((text.to_string(), toml::Value::from(text.as_ref()).to_string())),
        DeValue::Integer(number) => {
            plain(i64::from_str_radix(number.as_str(), number.radix()).ok()?.to_string())
        }
        DeValue::Float(number) => plain(number.as_str().replace('_', "")),
        DeValue::Boolean(truth) => plain(truth.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// A value from its TOML, placed at `span`.
fn value<'f>(toml: &'f str, span: &Range<usize>) -> Entry<'f> {
    // Scalars are written by `scalar` and by quantities; an unreadable one is reported as a string.
    let value = DeValue::parse(toml).map_or(DeValue::String(Cow::Borrowed(toml)), Spanned::into_inner);
    Spanned::new(span.clone(), value)
}

/// Sets the key at the end of a path. Missing tables are made; a `topology = "NAME"` becomes a table, and
/// lists of tables are searched by `name`.
pub(crate) fn set<'f>(
    table: &mut DeTable<'f>,
    path: &[String],
    key_span: &Range<usize>,
    toml: &'f str,
    span: &Range<usize>,
) {
    insert(table, path, key_span, value(toml, span));
}

/// As [`set`], with a value that has its place.
pub(crate) fn insert<'f>(
    table: &mut DeTable<'f>,
    path: &[String],
    key_span: &Range<usize>,
    value: Entry<'f>,
) {
    let [first, rest @ ..] = path else { return };
    let key = || Spanned::new(key_span.clone(), Cow::Owned(first.clone()));
    if rest.is_empty() {
        table.insert(key(), value);
        return;
    }
    if table.get(first.as_str()).is_none() {
        table.insert(key(), Spanned::new(key_span.clone(), DeValue::Table(DeTable::new())));
    }
    let Some(found) = table.get_mut(first.as_str()) else { return };
    if let (DeValue::String(_), "topology") = (found.get_ref(), first.as_str()) {
        let mut full = DeTable::new();
        full.insert(Spanned::new(found.span(), Cow::Borrowed("name")), found.clone());
        *found = Spanned::new(found.span(), DeValue::Table(full));
    }
    match found.get_mut() {
        DeValue::Table(inner) => insert(inner, rest, key_span, value),
        DeValue::Array(items) => {
            for item in items.iter_mut() {
                let is_named = |name: Option<&Entry<'_>>| {
                    name.and_then(|name| name.get_ref().as_str()) == Some(&rest[0])
                };
                if let DeValue::Table(inner) = item.get_mut()
                    && is_named(inner.get("name"))
                {
                    insert(inner, &rest[1..], key_span, value.clone());
                }
            }
        }
        // The reader reports that it is no table.
        _ => {}
    }
}

/// The tables of a network with the keys of one direction.
pub(crate) const DIRECTIONS: [&str; 2] = ["up", "down"];

/// Sets a key of a network. A key of the network itself is then that of both directions during the whole
/// run: it is removed from the directions and from the timeline, and so is what excludes it.
pub(crate) fn set_network<'f>(
    network: &mut DeTable<'f>,
    path: &[String],
    key_span: &Range<usize>,
    toml: &'f str,
    span: &Range<usize>,
) {
    if let [key] = path {
        let is_replaced = |name: &str| {
            name == key || (key == "rtt" && name == "delay") || (key == "delay" && name == "rtt")
        };
        let remove = |table: &mut DeTable<'f>| {
            retain(table, |name| name == key || !is_replaced(name));
            for direction in DIRECTIONS {
                if let Some(direction) = table_mut(table, direction) {
                    retain(direction, |name| !is_replaced(name));
                }
            }
        };
        remove(network);
        if let Some(DeValue::Array(changes)) = network.get_mut("timeline").map(Spanned::get_mut) {
            for change in changes.iter_mut() {
                if let DeValue::Table(change) = change.get_mut() {
                    remove(change);
                    retain(change, |name| !is_replaced(name));
                }
            }
            // A change of nothing else is none.
            let is_change = |change: &Entry<'f>| match change.get_ref() {
                DeValue::Table(change) => change.iter().any(|(key, value)| match value.get_ref() {
                    DeValue::Table(direction) => !direction.is_empty(),
                    _ => !["at", "for"].contains(&key.get_ref().as_ref()),
                }),
                _ => true,
            };
            let all = std::mem::replace(changes, DeArray::new());
            *changes = all.into_iter().filter(is_change).collect();
        }
    }
    set(network, path, key_span, toml, span);
}
