//! The tables of a result that can be lost while its runs are still readable.

/// A table that metrics and checks read. The tables `runs` and `requests` are not here: without them there is no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Connections.
    Connections,
    /// Client processes.
    Clients,
    /// Server processes.
    Servers,
    /// Requests as servers saw them.
    ServerRequests,
    /// What the emulator did.
    Links,
    /// Readings of the monitor.
    Monitor,
    /// Events of video players.
    Player,
    /// The reference measurements of the networks: of the whole result, not of single runs.
    Calibrations,
}

impl Table {
    /// Every table.
    pub const ALL: [Table; 8] = [
        Table::Connections,
        Table::Clients,
        Table::Servers,
        Table::ServerRequests,
        Table::Links,
        Table::Monitor,
        Table::Player,
        Table::Calibrations,
    ];

    /// The table's name: its file without the extension.
    pub const fn name(self) -> &'static str {
        match self {
            Table::Connections => "connections",
            Table::Clients => "clients",
            Table::Servers => "servers",
            Table::ServerRequests => "server_requests",
            Table::Links => "links",
            Table::Monitor => "monitor",
            Table::Player => "player",
            Table::Calibrations => "calibrations",
        }
    }

    /// The table of this name.
    pub fn find(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }
}
