//! XML of manifests: read within limits, and escaped.

use roxmltree::{Document, Node, ParsingOptions};

use super::error::{FormatError, Place};

/// The most elements, attributes and texts of a manifest.
const MOST_NODES: u32 = 1_000_000;

/// Reads a document. Definitions of entities are refused, because they could expand without a limit.
///
/// # Errors
/// It is not well-formed, or too large.
pub(super) fn parse(text: &str) -> Result<Document<'_>, FormatError> {
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let read = Document::parse_with_options(text.trim_start_matches('\u{feff}'), options);
    read.map_err(|error| {
        let position = error.pos();
        // The place is not repeated.
        let words = error.to_string();
        let words = words.split(" at ").next().unwrap_or_default();
        let place = Place::Column(position.row, position.col);
        FormatError::at(place, format!("the manifest is not well-formed XML: {}", super::shown(words)))
    })
}

/// The place of an element.
pub(super) fn place(node: Node<'_, '_>) -> Place {
    let position = node.document().text_pos_at(node.range().start);
    Place::Column(position.row, position.col)
}

/// The children with this name, in any namespace.
pub(super) fn children<'a, 'i>(
    node: Node<'a, 'i>,
    name: &'static str,
) -> impl DoubleEndedIterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}

/// The first child with this name.
pub(super) fn child<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> Option<Node<'a, 'i>> {
    children(node, name).next()
}

/// The text of a child, without white space around it.
pub(super) fn child_text<'a>(node: Node<'a, '_>, name: &'static str) -> Option<&'a str> {
    child(node, name).and_then(|child| child.text()).map(str::trim)
}

/// A whole number; `None` without the attribute.
///
/// # Errors
/// Another value.
pub(super) fn number(node: Node<'_, '_>, name: &str) -> Result<Option<u64>, FormatError> {
    let Some(text) = node.attribute(name) else { return Ok(None) };
    let fault = |_| FormatError::value(place(node), name, text, "a whole number");
    text.trim().parse().map(Some).map_err(fault)
}

/// Text as the value of an attribute or as content.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML cannot contain other control characters, not even escaped.
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
