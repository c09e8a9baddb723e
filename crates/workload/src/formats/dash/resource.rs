//! What elements of an MPD refer to: URLs and ranges of bytes.

use model::media::ByteRange;
use model::url::Url;
use roxmltree::Node;

use super::super::error::FormatError;
use super::super::listing::{Resource, join};
use super::super::xml::place;

/// The resource of an element: a URL, a range, or both.
pub(super) fn resource(
    element: Node<'_, '_>,
    url: &str,
    range_name: &str,
    base: &Url,
) -> Result<Resource, FormatError> {
    let range = element.attribute(range_name).map(|text| range(element, range_name, text)).transpose()?;
    let url = match element.attribute(url) {
        Some(reference) => join(base, reference, place(element))?,
        None => base.clone(),
    };
    Ok(Resource { url, range })
}

/// The range of bytes in an attribute.
pub(super) fn range(element: Node<'_, '_>, name: &str, text: &str) -> Result<ByteRange, FormatError> {
    let found = text.trim().split_once('-').and_then(|(first, last)| {
        let range = ByteRange { first: first.parse().ok()?, last: last.parse().ok()? };
        (range.first <= range.last).then_some(range)
    });
    found.ok_or_else(|| FormatError::value(place(element), name, text, "a range of bytes such as `0-499`"))
}
