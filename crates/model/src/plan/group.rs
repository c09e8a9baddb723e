//! The client groups of a run.

use serde::{Deserialize, Serialize};

use crate::external::OWN_CLIENT;
use crate::start::Start;
use crate::variant::Variant;

/// A role: some clients that do the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientGroup {
    /// Its number within the run.
    pub group: u16,
    /// The study's name for it; empty for the only group of a study without `[[group]]`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The node in which it runs.
    pub node: String,
    /// The name of the external client; `None` for `h123`.
    #[serde(default = "own_client", skip_serializing_if = "is_own_client")]
    pub client: String,
    /// The variant that it uses.
    pub variant: Variant,
    /// Index into `workloads`.
    pub workload: usize,
    /// Number of clients.
    pub clients: u32,
    /// How the clients begin.
    #[serde(default, skip_serializing_if = "is_together")]
    pub start: Start,
    /// When it ends.
    #[serde(default, skip_serializing_if = "GroupEnd::is_default")]
    pub end: GroupEnd,
    /// Whether it only loads server and links, and nothing is compared with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_background: bool,
}

/// When a client group ends. What is then in flight is unfinished, not failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupEnd {
    /// When its clients have done their work.
    #[default]
    Done,
    /// This many nanoseconds after the clients' start, or when its clients are done.
    AfterNs(u64),
    /// When the group of this number ends, or when its clients are done.
    With(u16),
}

/// The names of client groups whose ends wait for each other, beginning with the group of number `from`;
/// `None` if its end comes.
pub(crate) fn circle_of_ends(groups: &[&ClientGroup], from: u16) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let mut number = from;
    while let Some(group) = groups.get(usize::from(number)) {
        let is_known = names.contains(&group.name.as_str());
        names.push(&group.name);
        if is_known {
            return Some(names.join(", "));
        }
        match group.end {
            GroupEnd::With(other) => number = other,
            GroupEnd::Done | GroupEnd::AfterNs(_) => return None,
        }
    }
    None
}

impl GroupEnd {
    fn is_default(&self) -> bool {
        *self == GroupEnd::default()
    }
}

fn own_client() -> String {
    OWN_CLIENT.to_owned()
}

fn is_together(start: &Start) -> bool {
    *start == Start::Together
}

fn is_own_client(client: &str) -> bool {
    client == OWN_CLIENT
}
