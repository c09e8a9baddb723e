//! The tables of a result that can be lost while its runs are still readable.

model::named! { "a table that can be lost";
    /// A table that metrics and checks read. The tables `runs` and `requests` are not here: without them
    /// there is no run.
    pub enum Table {
        /// Connections.
        Connections = "connections",
        /// Client processes.
        Clients = "clients",
        /// Server processes.
        Servers = "servers",
        /// Requests as servers saw them.
        ServerRequests = "server_requests",
        /// What the emulator did.
        Links = "links",
        /// Readings of the monitor.
        Monitor = "monitor",
        /// Events of video players.
        Player = "player",
        /// Page loads of browsers.
        PageEvents = "page_events",
        /// The reference round trips before each run.
        RoundTrips = "round_trips",
        /// The reference measurements of the networks: of the whole result, not of single runs.
        Calibrations = "calibrations",
    }
}
