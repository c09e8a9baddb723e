//! `[workload.NAME]` as written.

use super::delivery::DeliveryKeys;
use super::request_files::UrlFile;
use super::{browser, delivery, loops, player, requests, script, start};
use crate::error::{InputError, Place};
use crate::keys;
use crate::options::{Options, Visit};
use crate::reader::{Key, Placed, Table};
use crate::start::Start;
use crate::workload::{Workload, WorkloadKind};

pub(super) const KEYS: &[Key] = keys! {
    "kind", "text", "required", r#""page""#, "`page`, `closed`, `open`, `player` or `script`.";
    "clients", "whole number", "`1`", "91",
        "The number of clients, 1 to 100 000, each with its own connections, cache and place in a script.";
    "start", "text or table", "`\"together\"`", r#"{ evenly = "10s" }"#, "When the clients start; [below](#start).";
    "visit", "text", "`\"first\"`", r#""repeat""#,
        "`first`, `repeat`, `cached` or `upgrade`: whether the clients have been at the server before; [below](#repeat-visits).";
};

/// The most clients of a workload or group.
pub(super) const MOST_CLIENTS: u32 = 100_000;

/// `[workload.NAME]`.
#[derive(Clone, Debug)]
pub(super) struct NamedEntry {
    pub(super) name: Placed<String>,
    pub(super) clients: u32,
    pub(super) start: Start,
    pub(super) options: Options,
    /// Where it says that its clients have been at the server before.
    pub(super) repeat: Option<Place>,
    /// The media whose segments a loop requests.
    pub(super) media: Option<Placed<String>>,
    /// The list of its URLs.
    pub(super) urls: Option<UrlFile>,
    pub(super) what: Entry,
}

/// A workload. Only the page and the scripts are still names.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Page(Placed<String>, DeliveryKeys),
    Player(Box<player::PlayerEntry>),
    Script(script::ScriptEntryKeys),
    Resolved(Workload),
}

/// Reads the tables of all workloads.
pub(super) fn read(root: &Table<'_>) -> Result<Vec<NamedEntry>, InputError> {
    let workloads = root.required("workload", Table::table)?.named_tables()?;
    workloads.into_iter().map(|(name, entry)| read_workload(name, entry)).collect()
}

fn read_workload(name: Placed<String>, table: Table<'_>) -> Result<NamedEntry, InputError> {
    let table = table.knowing(KEYS);
    let kind = table.required("kind", Table::named::<WorkloadKind>)?.value;
    let table = table.with_keys(keys_of(kind))?;
    let what = match kind {
        WorkloadKind::Page => Entry::Page(table.required("page", Table::string)?, delivery::read(&table)?),
        WorkloadKind::Closed => Entry::Resolved(Workload::Closed(loops::read_closed(&table)?)),
        WorkloadKind::Open => Entry::Resolved(Workload::Open(loops::read_open(&table)?)),
        WorkloadKind::Player => Entry::Player(Box::new(player::read(&table)?)),
        WorkloadKind::Script => Entry::Script(script::read(&table)?),
    };
    let clients = table.integer("clients", 1..=MOST_CLIENTS)?.map_or(1, |clients| clients.value);
    let start = start::read(&table)?.unwrap_or_default();
    let visit = table.named::<Visit>("visit")?.filter(|visit| !visit.value.is_first());
    let is_loop = matches!(kind, WorkloadKind::Closed | WorkloadKind::Open);
    let media = if is_loop { loops::read_media(&table)? } else { None };
    let (mut options, urls) = match kind {
        WorkloadKind::Closed | WorkloadKind::Open if media.is_some() => (requests::read(&table)?, None),
        WorkloadKind::Closed | WorkloadKind::Open => (requests::read(&table)?, UrlFile::read(&table)?),
        WorkloadKind::Script => (requests::read(&table)?, None),
        WorkloadKind::Page | WorkloadKind::Player => (Options::default(), None),
    };
    if kind == WorkloadKind::Page {
        options.browser = browser::read(&table)?;
    }
    options.connections.visit = visit.as_ref().map_or(Visit::First, |visit| visit.value);
    let repeat = visit.map(|visit| visit.place);
    Ok(NamedEntry { name, clients, start, options, repeat, urls, media, what })
}

/// The keys of a kind of workload.
pub(super) fn keys_of(kind: WorkloadKind) -> impl Iterator<Item = &'static Key> {
    let own: [&[Key]; 3] = match kind {
        WorkloadKind::Page => [delivery::KEYS, browser::KEYS, &[]],
        WorkloadKind::Closed => [loops::LOOP_KEYS, loops::CLOSED_KEYS, requests::KEYS],
        WorkloadKind::Open => [loops::LOOP_KEYS, loops::OPEN_KEYS, requests::KEYS],
        WorkloadKind::Player => [player::KEYS, &[], &[]],
        WorkloadKind::Script => [script::KEYS, requests::KEYS, &[]],
    };
    KEYS.iter().chain(own.into_iter().flatten())
}
