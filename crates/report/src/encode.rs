//! How strings are made harmless where they are written: XML, CSV, data URIs.

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
#[derive(Clone, Debug)]
pub(crate) struct Csv {
    out: String,
}

/// One field of a [`Csv`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field<'a> {
    /// Words, which may come from anywhere.
    Text(&'a str),
    /// A number.
    Number(f64),
    /// A whole number.
    Whole(u64),
    /// A number or nothing.
    Maybe(Option<f64>),
    /// Nothing.
    Empty,
}

impl Csv {
    /// Begins with the names of the columns.
    pub(crate) fn new(columns: &[&str]) -> Self {
        let mut csv = Csv { out: String::new() };
        csv.row(&columns.iter().map(|name| Field::Text(name)).collect::<Vec<_>>());
        csv
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, fields: &[Field<'_>]) {
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            match field {
                Field::Text(text) => self.out.push_str(&csv_text(text)),
                Field::Number(number) | Field::Maybe(Some(number)) => self.out.push_str(&number.to_string()),
                Field::Whole(number) => self.out.push_str(&number.to_string()),
                Field::Maybe(None) | Field::Empty => {}
            }
        }
        self.out.push('\n');
    }

    /// The whole text.
    pub(crate) fn finish(self) -> String {
        self.out
    }
}

/// A table as a file in three forms, written row by row.
pub(crate) struct TableText {
    columns: Vec<String>,
    csv: Csv,
    markdown: String,
    json: Vec<String>,
}

impl TableText {
    /// Begins with the names of the columns.
    pub(crate) fn new(columns: &[&str]) -> Self {
        let names: Vec<String> = columns.iter().map(|name| markdown(name)).collect();
        let rules = vec!["---"; columns.len()];
        TableText {
            columns: columns.iter().map(|name| clean(name)).collect(),
            csv: Csv::new(columns),
            markdown: format!("| {} |\n| {} |\n", names.join(" | "), rules.join(" | ")),
            json: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, fields: &[Field<'_>]) {
        self.csv.row(fields);
        let cells: Vec<String> = fields.iter().map(|field| markdown(&field.plain())).collect();
        self.markdown.push_str(&format!("| {} |\n", cells.join(" | ")));
        // Objects by hand: their keys keep the order of the columns.
        let pairs = self.columns.iter().zip(fields);
        let pairs: Vec<String> =
            pairs.map(|(name, field)| format!("{}: {}", serde_json::json!(name), field.json())).collect();
        self.json.push(format!("  {{{}}}", pairs.join(", ")));
    }

    /// The whole texts: CSV, Markdown, JSON.
    pub(crate) fn finish(self) -> (String, String, String) {
        let json = match self.json.is_empty() {
            true => "[]\n".to_owned(),
            false => format!("[\n{}\n]\n", self.json.join(",\n")),
        };
        (self.csv.finish(), self.markdown, json)
    }
}

impl Field<'_> {
    fn plain(&self) -> String {
        match self {
            Field::Text(text) => (*text).to_owned(),
            Field::Number(number) | Field::Maybe(Some(number)) => number.to_string(),
            Field::Whole(number) => number.to_string(),
            Field::Maybe(None) | Field::Empty => String::new(),
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Field::Text(text) => clean(text).into(),
            Field::Number(number) | Field::Maybe(Some(number)) => (*number).into(),
            Field::Whole(number) => (*number).into(),
            Field::Maybe(None) | Field::Empty => serde_json::Value::Null,
        }
    }
}

/// Text that Markdown shows as it is, on one line, whoever wrote it.
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

/// A field of text. Spreadsheets take a field that begins with one of `= + - @` or a tab for a formula, so such a
/// field gets an apostrophe before it.
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

/// Text for HTML in which what stands between backticks is code; a backtick without its second stays one.
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
    fn a_field_is_no_formula() {
        let mut csv = Csv::new(&["a", "b"]);
        csv.row(&[Field::Text("=HYPERLINK(\"x\")"), Field::Number(-0.5)]);
        csv.row(&[Field::Text("@x,y"), Field::Maybe(None)]);
        assert_eq!(csv.finish(), "a,b\n\"'=HYPERLINK(\"\"x\"\")\",-0.5\n\"'@x,y\",\n");
    }

    #[test]
    fn a_table_says_the_same_in_three_forms() {
        let mut table = TableText::new(&["a_b", "n", "m"]);
        table.row(&[Field::Text("x|y\n<i>"), Field::Number(-0.5), Field::Maybe(None)]);
        table.row(&[Field::Text("\"q\""), Field::Whole(7), Field::Maybe(Some(1.5))]);
        let (csv, markdown, json) = table.finish();
        assert_eq!(csv, "a_b,n,m\n\"x|y\n<i>\",-0.5,\n\"\"\"q\"\"\",7,1.5\n");
        assert_eq!(
            markdown,
            "| a\\_b | n | m |\n| --- | --- | --- |\n| x\\|y &lt;i&gt; | -0.5 |  |\n| \"q\" | 7 | 1.5 |\n"
        );
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read[0]["n"], -0.5);
        assert!(read[0]["m"].is_null() && read[0]["a_b"] == "x|y\n<i>" && read[1]["m"] == 1.5);
        assert!(json.starts_with("[\n  {\"a_b\": "), "{json}");
        assert_eq!(TableText::new(&["a"]).finish().2, "[]\n");
    }

    #[test]
    fn nothing_that_somebody_else_wrote_is_markup() {
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
