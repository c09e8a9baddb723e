//! Servers that h123 does not start: where they are, which variants they offer, and what they send.

mod crawl;
mod discover;
mod fetch;
mod follow;

pub use crawl::{FoundPage, crawl};
pub(crate) use discover::resolve_trust;
pub use discover::{Offer, discover, target};
pub use fetch::{FetchError, Fetched, Fetcher};
pub use follow::Follower;
