//! Requests as templates: one per URL, encoded once by the engine.

use engine::Request;
use model::assignment::{Assignment, Workload};
use model::page::ResourceKind;

/// The name that our clients give themselves.
const USER_AGENT: &str = concat!("h123/", env!("CARGO_PKG_VERSION"));

/// One template per path of the workload, in the same order.
pub(crate) fn templates(assignment: &Assignment, paths: &[&str]) -> Vec<Request> {
    paths
        .iter()
        .enumerate()
        .map(|(index, path)| Request {
            #[expect(clippy::cast_possible_truncation, reason = "URL numbers are u32 everywhere")]
            template: index as u32,
            method: "GET".to_owned(),
            scheme: assignment.target.variant.scheme().to_owned(),
            authority: assignment.target.authority.clone(),
            path: (*path).to_owned(),
            fields: fields(&assignment.workload, index),
            body: bytes::Bytes::new(),
        })
        .collect()
}

/// The fields that a browser sends (in kind and length), so that header compression has real work to do.
fn fields(workload: &Workload, index: usize) -> Vec<(String, String)> {
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    match workload {
        Workload::Page { page } => {
            let kind = page.resources.get(index).map_or(ResourceKind::Html, |resource| resource.kind);
            let (accept, destination) = match kind {
                ResourceKind::Html => {
                    ("text/html,application/xhtml+xml,application/xml;q=0.9,image/png,*/*;q=0.8", "document")
                }
                ResourceKind::Css => ("text/css,*/*;q=0.1", "style"),
                ResourceKind::Js => ("*/*", "script"),
                ResourceKind::Image => ("image/png,image/*,*/*;q=0.8", "image"),
                ResourceKind::Font => ("*/*", "font"),
            };
            vec![
                field("user-agent", USER_AGENT),
                field("accept", accept),
                field("accept-language", "en-GB,en;q=0.9"),
                field("sec-fetch-dest", destination),
                field("sec-fetch-site", if index == 0 { "none" } else { "same-origin" }),
            ]
        }
        Workload::Closed { .. } => vec![field("user-agent", USER_AGENT), field("accept", "*/*")],
    }
}
