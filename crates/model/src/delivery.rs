//! How a server delivers a page beyond answering requests: server push, Early Hints, and a document that
//! takes time.

use serde::{Deserialize, Serialize};

use crate::named;
use crate::units::{counted, format_ns};
use crate::variant::{HttpVersion, Variant};

/// How a server delivers a page. The default answers requests and does nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delivery {
    /// The resources that are pushed with the document (RFC 9113, section 8.4), by their indices.
    pub push: Vec<usize>,
    /// The resources that a 103 response to the request for the document names (RFC 8297), by their indices.
    pub early_hints: Vec<usize>,
    /// How long the server takes to make the document, in nanoseconds. Promises and hints do not wait.
    pub document_delay_ns: u64,
}

named! { "a way to deliver a page";
    /// What a server must be able to do for a [`Delivery`].
    pub enum DeliveryMeans {
        /// Server push.
        Push = "push",
        /// Early Hints.
        EarlyHints = "early_hints",
        /// A document that takes time.
        DocumentDelay = "document_delay",
        /// Think times of single resources.
        Waits = "waits",
        /// Further names, each with its certificate.
        Hosts = "hosts",
    }
}

impl DeliveryMeans {
    /// What the server does, such as `pushes resources`.
    pub const fn describe(self) -> &'static str {
        match self {
            DeliveryMeans::Push => "pushes resources",
            DeliveryMeans::EarlyHints => "sends Early Hints (103)",
            DeliveryMeans::DocumentDelay => "delays documents",
            DeliveryMeans::Waits => "waits before it answers (`wait` of a page)",
            DeliveryMeans::Hosts => "answers for several hosts (`host` of a page)",
        }
    }

    /// Why no server can do it over a variant, if none can.
    pub fn refuses(self, variant: Variant) -> Option<String> {
        let reason = match (self, variant.http()) {
            (DeliveryMeans::Push, HttpVersion::Http3) => {
                "HTTP/3 has server push, but servers do not implement it"
            }
            (DeliveryMeans::Push, HttpVersion::Http10 | HttpVersion::Http11) => "HTTP/1 has no server push",
            _ => return None,
        };
        Some(format!("{variant}: {reason}"))
    }
}

impl Delivery {
    /// Whether it is the default.
    pub fn is_plain(&self) -> bool {
        *self == Delivery::default()
    }

    /// What the server must be able to do.
    pub fn means(&self) -> impl Iterator<Item = DeliveryMeans> {
        let needs = [
            (DeliveryMeans::Push, !self.push.is_empty()),
            (DeliveryMeans::EarlyHints, !self.early_hints.is_empty()),
            (DeliveryMeans::DocumentDelay, self.document_delay_ns > 0),
        ];
        needs.into_iter().filter_map(|(means, is_needed)| is_needed.then_some(means))
    }

    /// The end of a sentence about a page, such as `, pushes 1 resource, document after 50 ms`.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (verb, resources) in [("pushes", &self.push), ("hints at", &self.early_hints)] {
            if !resources.is_empty() {
                text += &format!(", {verb} {}", counted(resources.len() as u64, "resource"));
            }
        }
        if self.document_delay_ns > 0 {
            text += &format!(", document after {}", format_ns(self.document_delay_ns));
        }
        text
    }
}
