//! Escapes strings where they are written: XML, CSV, Markdown, JSON, data URIs.

use serde_json::{Value, json};

use crate::context::Row;
use crate::text::clean;

/// Text or an attribute's value inside XML or HTML.
pub(crate) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// A table that is written row by row (RFC 4180, with line feeds).
#[derive(Clone, Debug, Default)]
pub(crate) struct Csv {
    out: String,
}

impl Csv {
    /// Adds a row of named values. The names of the first row are the header.
    pub(crate) fn row(&mut self, fields: &[(&str, Value)]) {
        if self.out.is_empty() {
            self.line(fields.iter().map(|(name, _)| csv_text(name)));
        }
        self.line(fields.iter().map(|(_, field)| csv_field(field)));
    }

    /// Adds a row about a cell: its context and level come first, its status last.
    pub(crate) fn cell(&mut self, context: &str, row: &Row<'_>, fields: Vec<(&str, Value)>) {
        let head = [("context", context.into()), ("level", row.series.name.as_str().into())];
        let all = head.into_iter().chain(fields).chain([("status", row.status().into())]);
        self.row(&all.collect::<Vec<_>>());
    }

    fn line(&mut self, fields: impl Iterator<Item = String>) {
        self.out.push_str(&fields.collect::<Vec<_>>().join(","));
        self.out.push('\n');
    }

    /// The whole text.
    pub(crate) fn finish(self) -> String {
        self.out
    }
}

/// A table in three formats: CSV, Markdown, JSON.
#[derive(Clone, Debug)]
pub struct TableText {
    /// Comma-separated values with a header.
    pub csv: String,
    /// A table of GitHub's Markdown.
    pub markdown: String,
    /// A list of objects.
    pub json: String,
}

impl TableText {
    /// Writes rows of values below the names of their columns.
    pub fn new(columns: &[&str], rows: &[Vec<Value>]) -> TableText {
        let mut csv = Csv::default();
        csv.line(columns.iter().map(|name| csv_text(name)));
        let names: Vec<String> = columns.iter().map(|name| markdown(name)).collect();
        let rules = vec!["---"; columns.len()];
        let mut text = format!("| {} |\n| {} |\n", names.join(" | "), rules.join(" | "));
        let mut objects = Vec::with_capacity(rows.len());
        for row in rows {
            csv.line(row.iter().map(csv_field));
            let cells: Vec<String> = row.iter().map(|field| markdown(&plain(field))).collect();
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
            // Written by hand because keys keep the order of the columns.
            let pair = |(name, field): (&&str, &Value)| match field {
                Value::String(text) => format!("{}: {}", json!(clean(name)), json!(clean(text))),
                number => format!("{}: {number}", json!(clean(name))),
            };
            let pairs: Vec<String> = columns.iter().zip(row).map(pair).collect();
            objects.push(format!("  {{{}}}", pairs.join(", ")));
        }
        let json = match objects.is_empty() {
            true => "[]\n".to_owned(),
            false => format!("[\n{}\n]\n", objects.join(",\n")),
        };
        TableText { csv: csv.finish(), markdown: text, json }
    }
}

/// A field without escapes. Whole numbers have no point.
fn plain(field: &Value) -> String {
    match field {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => {
            other.as_f64().filter(|_| other.is_f64()).map_or(other.to_string(), |number| number.to_string())
        }
    }
}

fn csv_field(field: &Value) -> String {
    if let Value::String(text) = field { csv_text(text) } else { plain(field) }
}

/// Text from any source that Markdown shows unchanged, on one line.
pub(crate) fn markdown(text: &str) -> String {
    let text = clean(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '!' | '~' => {
                out.push('\\');
                out.push(c);
            }
            '@' => out.push_str("&#64;"),
            '\n' | '\r' | '\t' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A field of text. Spreadsheets read a field that begins with one of `= + - @` or a tab as a formula, so
/// such a field is preceded by an apostrophe.
fn csv_text(text: &str) -> String {
    let text = clean(text);
    let is_formula =
        text.trim_start().starts_with(['=', '+', '-', '@', '\t', '|', '%', '＝', '＋', '－', '＠'])
            || text.starts_with('\t');
    let text = if is_formula { format!("'{text}") } else { text };
    if text.contains(['"', ',', '\n', ';']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A file inside a link (RFC 2397, RFC 4648 section 4).
pub(crate) fn data_uri(media_type: &str, text: &str) -> String {
    let mut out = format!("data:{media_type};base64,");
    out.reserve(text.len() * 4 / 3 + 4);
    for chunk in text.as_bytes().chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let digit = (bits >> (18 - 6 * position)) & 63;
            out.push(if position > chunk.len() { '=' } else { char::from(BASE64[digit as usize]) });
        }
    }
    out
}

/// Text for HTML in which text between backticks is code; an unpaired backtick is kept.
pub(crate) fn with_code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once('`') {
        let Some((code, after)) = tail.split_once('`') else { break };
        out.push_str(&format!("{}<code>{}</code>", xml(before), xml(code)));
        rest = after;
    }
    out.push_str(&xml(rest));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_escapes() {
        assert_eq!(xml("<script>\"'&]]>\u{0}"), "&lt;script&gt;&quot;&#39;&amp;]]&gt;\u{fffd}");
    }

    #[test]
    fn a_field_is_never_a_formula() {
        let mut csv = Csv::default();
        csv.row(&[("a", "=HYPERLINK(\"x\")".into()), ("b", (-0.5).into())]);
        csv.row(&[("a", "@x,y".into()), ("b", None::<f64>.into())]);
        assert_eq!(csv.finish(), "a,b\n\"'=HYPERLINK(\"\"x\"\")\",-0.5\n\"'@x,y\",\n");
    }

    #[test]
    fn a_table_has_the_same_values_in_three_formats() {
        let rows = [
            vec!["x|y\n<i>".into(), (-0.5).into(), Value::Null],
            vec!["\"q\"".into(), 7_u64.into(), Some(1.5).into()],
        ];
        let TableText { csv, markdown, json } = TableText::new(&["a_b", "n", "m"], &rows);
        assert_eq!(csv, "a_b,n,m\n\"x|y\n<i>\",-0.5,\n\"\"\"q\"\"\",7,1.5\n");
        assert_eq!(
            markdown,
            "| a\\_b | n | m |\n| --- | --- | --- |\n| x\\|y &lt;i&gt; | -0.5 |  |\n| \"q\" | 7 | 1.5 |\n"
        );
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read[0]["n"], -0.5);
        assert!(read[0]["m"].is_null() && read[0]["a_b"] == "x|y\n<i>" && read[1]["m"] == 1.5);
        assert!(json.starts_with("[\n  {\"a_b\": "), "{json}");
        assert_eq!(TableText::new(&["a"], &[]).json, "[]\n");
    }

    #[test]
    fn untrusted_text_is_never_markup() {
        assert_eq!(markdown("a|b <img> `x` @me"), "a\\|b &lt;img&gt; \\`x\\` &#64;me");
        assert_eq!(markdown("one\ntwo"), "one two");
    }

    #[test]
    fn base64_as_in_the_rfc() {
        let encode = |text: &str| data_uri("", text).split_off("data:;base64,".len());
        let expected = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, want) in expected.iter().enumerate() {
            assert_eq!(encode(&"foobar"[..length]), *want);
        }
    }
}
