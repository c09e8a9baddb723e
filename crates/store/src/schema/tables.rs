//! The columns of every table: a column is one line.

use model::assignment::ClientReport;
use model::monitor::Reading;
use model::page_events::PageEvents;
use model::player::PlayerEvent;
use model::record::{Calibration, LinkReport, ServerReport, ServerRequest};
use model::sample::ConnectionRow;

use super::column::{column, columns, join};
use super::conversions::{
    CLOSED, LENGTH, REFUSED, STATUS, TIMEOUT, add_failures, client_name, failure_kind, failures,
    outcome_name, reason, set_client_name, set_failure_kind, set_outcome, set_reason,
};
use super::{Column, Request, Row, RunSummary, Table};
use crate::cell::{Cell, Kind, Value};

/// Calls a macro with each table except `runs`: its name, what its rows hold, and their field in
/// [`model::RunRecord`].
macro_rules! for_each_table {
    ($then:ident) => {
        $then! {
            requests: $crate::schema::Request = samples,
            connections: model::sample::ConnectionRow = connections,
            clients: model::assignment::ClientReport = clients,
            servers: model::record::ServerReport = servers,
            server_requests: model::record::ServerRequest = server_requests,
            player: model::player::PlayerEvent = player,
            page_events: model::page_events::PageEvents = page_events,
            links: model::record::LinkReport = links,
            monitor: model::monitor::Reading = readings,
            round_trips: model::record::Calibration = round_trips,
        }
    };
}
pub(crate) use for_each_table;

/// The three columns of an outcome; they are read in this order.
macro_rules! outcome_columns {
    ($($field:ident).+) => {
        columns! { ""
            outcome [Text: |row| outcome_name(&row.item.$($field).+), |row, value| set_outcome(&mut row.item.$($field).+, value)]
                "`ok`, `failed` or `unsupported`";
            failure_kind [Text or null: |row| failure_kind(&row.item.$($field).+), |row, value| set_failure_kind(&mut row.item.$($field).+, value)]
                "kind of the failure; null where there was none";
            outcome_reason [Text or null: |row| reason(&row.item.$($field).+), |row, value| set_reason(&mut row.item.$($field).+, value)]
                "why it failed, or what is unsupported; null for `ok`";
        }
    };
}

/// The columns of one direction of a link.
macro_rules! direction_columns {
    ($prefix:literal, $side:ident) => {
        columns! { $prefix
            packets_in_count [$side.packets_in] "frames that entered";
            in_bytes [$side.bytes_in] "bytes of the frames that entered, including Ethernet headers";
            packets_out_count [$side.packets_out] "frames that left";
            out_bytes [$side.bytes_out] "bytes of the frames that left";
            lost_configured_count [$side.lost_configured] "frames dropped by the network's configured loss";
            lost_outage_count [$side.lost_outage] "frames dropped because they arrived during an outage";
            lost_queue_count [$side.lost_queue] "frames dropped because the queue was full";
            lost_codel_count [$side.lost_codel] "frames dropped by CoDel";
            lost_overload_count [$side.lost_overload] "frames dropped because the emulator could not keep up: a fault";
            lost_middlebox_count [$side.lost_middlebox] "frames dropped by the network's rule for UDP, or sent to ports that a NAT forgot";
            marked_count [$side.marked] "frames that CoDel marked (CE) instead of dropping them";
            duplicated_count [$side.duplicated] "copies of frames that the network made; null where not counted";
            reordered_count [$side.reordered] "frames that left after a frame that entered later; null where not counted";
            late_p50_ns [$side.lateness? p50_ns] "lateness of frames (left − due): median; null where not measured";
            late_p99_ns [$side.lateness? p99_ns] "lateness of frames: 99th percentile; null where not measured";
            late_max_ns [$side.lateness? max_ns] "lateness of frames: maximum; null where not measured";
        }
    };
}

impl Table for RunSummary {
    const NAME: &'static str = "runs";
    const MEANING: &'static str = "one row per run";

    fn columns() -> Vec<Column<Self>> {
        let time = columns! { ""
            block [block] "number of the run's block in the plan";
            began_unix_ns [began_unix_ns] "start, Unix time; for people, never subtracted";
            took_ns [took_ns] "duration, including the setup of the lab";
            content_bytes [content? bytes] "length of the files of servers, links counted once; null if the study does not state the page cache";
            content_cached_bytes [content? cached_bytes] "bytes of these files in the page cache when the run began";
        };
        let counts = columns! { ""
            requests_count [counts.requests] "rows of the run in the table `requests`";
            connections_count [counts.connections] "rows of the run in the table `connections`";
            clients_count [counts.clients] "rows of the run in the table `clients`";
            servers_count [counts.servers] "rows of the run in the table `servers`";
            server_requests_count [counts.server_requests] "rows of the run in the table `server_requests`";
            player_count [counts.player] "rows of the run in the table `player`";
            page_events_count [counts.page_events] "rows of the run in the table `page_events`";
            links_count [counts.links] "rows of the run in the table `links`";
            monitor_count [counts.monitor] "rows of the run in the table `monitor`";
            round_trips_count [counts.round_trips] "rows of the run in the table `round_trips`";
        };
        join([time, outcome_columns!(outcome), counts])
    }
}

impl Table for Request {
    const NAME: &'static str = "requests";
    const MEANING: &'static str =
        "one row per request; timestamps are ns since the run's start on the node's monotonic clock";

    fn group(&self) -> u16 {
        self.sample.group
    }

    fn columns() -> Vec<Column<Self>> {
        let columns = columns! { ""
            group [sample.group] "number of the client group in the run";
            client [sample.client] "number of the client in the group";
            request [sample.request] "number of the request in the group, in the order of intended times";
            url [sample.url] "index, from 0, into `urls` of the table `clients`";
            path [path; write only] "URL as the client reported it; null where it reported none";
            connection [sample.connection] "number of the connection that carried it; null where none did";
            cause [sample.cause] "why it began: `due`, `hint` (a 103 response named it) or `push` (the server promised the response, so nothing was sent)";
            phase [sample.phase] "`warmup` (stored, not analysed) or `measure`";
            intended_ns [sample.intended_ns] "when it was due";
            resent_count [sample.resent] "how often it was sent again because its connection was lost";
            sent_ns [sample.sent_ns] "when its first byte was handed to the transport; null where it was not sent, as of a pushed response";
            first_byte_ns [sample.first_byte_ns] "when the header of the final response was read; null where none came";
            done_ns [sample.done_ns] "when the last byte of the response was read, or when the request failed";
            status [sample.status] "final status code; null where none came";
            version [sample.version] "HTTP version that the response used; null where none came";
            request_header_raw_bytes [sample.request_header_raw_bytes if has_header_bytes]
                "request header: names and values before compression, with `:method`, `:path`, `:scheme` and `:authority` (in HTTP/1.1, the request line counts as these); null where the client does not report it";
            request_header_wire_bytes [sample.request_header_wire_bytes if has_header_bytes]
                "request header on the wire, including frame headers; null where the client does not report it";
            response_header_raw_bytes [sample.response_header_raw_bytes if has_header_bytes]
                "response header: names and values before compression, with `:status` (in HTTP/1.1, the status line counts as this); null where the client does not report it";
            response_header_wire_bytes [sample.response_header_wire_bytes if has_header_bytes]
                "response header on the wire, including frame headers; null where the client does not report it";
            request_body_bytes [sample.request_body_bytes] "request body bytes sent";
            response_body_bytes [sample.response_body_bytes if has_body_bytes]
                "response body bytes received, without transfer coding; null where the client does not report them";
            expected_body_bytes [sample.expected_body_bytes] "correct body length; null where the workload does not know it";
            response_body_crc32 [sample.response_body_crc32]
                "CRC-32 of the response body; null for pages (compared byte by byte), for most bodies of 32 kB or more, and for external clients";
            content [sample.content]
                "media type and content coding: index, from 0, into `contents` of the table `clients`; null where not known";
        };
        join([columns, outcome_columns!(sample.outcome)])
    }
}

impl Table for ConnectionRow {
    const NAME: &'static str = "connections";
    const MEANING: &'static str = "one row per connection; timestamps as in the table `requests`";

    fn group(&self) -> u16 {
        self.group
    }

    fn columns() -> Vec<Column<Self>> {
        let columns = columns! { ""
            group [group] "number of the client group in the run";
            client [client] "number of the client in the group";
            connection [connection] "number of the connection in the group, in the order of opening";
            opened_ns [opened_ns] "when connect was called (TCP) or the first datagram was sent (QUIC)";
            connected_ns [connected_ns] "when TCP was established; null for QUIC";
            ready_ns [ready_ns] "when the first request could be sent; null where the connection failed before";
            closed_ns [closed_ns] "when either side closed it";
            server_close [server_close]
                "why the server ended it: `close_option` (`Connection: close`), `http10`, `no_length` or `unannounced`; null where the client did, or where it failed";
            alpn [alpn] "protocol negotiated with ALPN";
            tls_version [tls_version] "TLS version";
            cipher_suite [cipher_suite] "cipher suite, as registered with IANA";
            key_exchange [key_exchange] "key exchange group, as registered with IANA";
            resumed [resumed] "whether a TLS session was resumed";
            early_data [early_data] "`not_tried`, `accepted`, or `rejected`: its requests were sent again";
            early_requests_count [early_requests] "requests sent as early data";
            migrated_ns [migrated? at_ns] "when it migrated to a new local address (QUIC); null where it did not";
            migrated_answered_ns [migrated? answered_ns]
                "when the server's first packet arrived at the new address; null where none did";
            pushed_count [pushed.whole] "responses that the server pushed completely (HTTP/2)";
            pushed_used_count [pushed.used] "of these, resources of the page that a client loads";
            pushed_broken_count [pushed.broken] "responses that the server promised but did not complete";
            pushed_refused_count [pushed.refused] "promised responses that the client refused: too many at once, malformed, or of another origin";
            pushed_late_count [pushed.late] "promised responses that the client cancelled because it had requested them";
            pushed_bytes [pushed.body_bytes] "body bytes of pushed responses";
            pushed_wasted_bytes [pushed.wasted_bytes] "of these, body bytes that no client used";
            hinted_used_count [hinted.used] "resources that the client requested because a 103 response named them";
            hinted_late_count [hinted.late] "resources that a 103 response named after the client had requested them";
            hinted_unused_count [hinted.unused] "targets of a 103 response that the client does not need";
            lost [lost] "whether the client gave it up because its network had lost it (`reconnect`)";
            lost_requests_count [resent] "requests that were in flight then and were sent again";
            sent_bytes [Integer or null: |row| bytes_of(row, row.item.sent_bytes), |row, value| set_bytes(row, value, |row| &mut row.sent_bytes)]
                "bytes handed to the transport: TCP or UDP payload; null for browsers, which do not report them";
            received_bytes [Integer or null: |row| bytes_of(row, row.item.received_bytes), |row, value| set_bytes(row, value, |row| &mut row.received_bytes)]
                "bytes received from the transport: TCP or UDP payload; null for browsers";
        };
        join([columns, outcome_columns!(outcome)])
    }
}

impl Table for ClientReport {
    const NAME: &'static str = "clients";
    const MEANING: &'static str = "one row per client group, in the order of the groups";

    fn group(&self) -> u16 {
        self.group
    }

    fn columns() -> Vec<Column<Self>> {
        let own = columns! { ""
            group [group] "number of the client group in the run";
            urls [urls] "URLs that `url` of the table `requests` refers to";
            contents [contents] "media types and content codings that `content` of the table `requests` refers to";
            clients_begun_count [clients_begun] "clients that began";
            clients_finished_count [clients_finished]
                "of these, clients whose workload was done before the end of the run or of their group";
            started_ns [started_ns] "intended time of the first request";
            finished_ns [finished_ns] "end of the last response";
            cpu_user_ns [cpu_user_ns] "CPU time in user space from `started_ns` to `finished_ns`";
            cpu_system_ns [cpu_system_ns] "CPU time in the kernel from `started_ns` to `finished_ns`";
            run_queue_ns [run_queue_ns] "time runnable but not running from `started_ns` to `finished_ns`";
            suspended_count [suspended.count]
                "periods of 50 ms or more in which its loop stood still although it had to act";
            suspended_total_ns [suspended.total_ns] "sum of these periods";
            suspended_max_ns [suspended.max_ns] "longest of these periods";
            max_resident_bytes [max_resident_bytes] "peak resident memory";
            dns_lookup_began_ns [dns_lookup? began_ns] "start of the DNS lookup; null where the address was known";
            dns_lookup_ended_ns [dns_lookup? ended_ns] "end of the DNS lookup; null where the address was known";
            address_changed_ns [address_change? at_ns]
                "when the client learned that its address was gone, for the first time; null where its address stayed";
            received_again_ns [address_change? received_ns]
                "when it received bytes of a response again, over a migrated or a later connection; null where it received none";
            lag_p50_ns [lag.p50_ns] "sent − intended of an open loop's measured requests: median";
            lag_p99_ns [lag.p99_ns] "sent − intended of an open loop's measured requests: 99th percentile";
            lag_max_ns [lag.max_ns] "sent − intended of an open loop's measured requests: maximum";
            own_lag_p50_ns [own_lag.p50_ns]
                "the client's part of this lag, without the wait for a free connection: median";
            own_lag_p99_ns [own_lag.p99_ns] "the client's part of this lag: 99th percentile";
            own_lag_max_ns [own_lag.max_ns] "the client's part of this lag: maximum";
            never_sent_count [never_sent] "requests that were due but never sent; they have no row";
            never_sent_held_count [never_sent_held] "of these, requests for which no connection was free";
            unfinished_count [unfinished] "requests that the end of the run cut off; they have no row";
            stopped [stopped] "why the client stopped before its workload was done; null where it did not";
            warmup_ended_ns [warmup? ended_ns] "end of the warm-up; null where there was none";
            warmup_cpu_user_ns [warmup? cpu_user_ns] "the warm-up's part of `cpu_user_ns`";
            warmup_cpu_system_ns [warmup? cpu_system_ns] "the warm-up's part of `cpu_system_ns`";
            warmup_run_queue_ns [warmup? run_queue_ns] "the warm-up's part of `run_queue_ns`";
            warmup_suspended_ns [warmup? suspended_ns] "the warm-up's part of `suspended_total_ns`";
            warmup_sent_bytes [warmup? sent_bytes] "bytes handed to the transport during the warm-up";
            warmup_received_bytes [warmup? received_bytes] "bytes received from the transport during the warm-up";
        };
        // The first of these columns makes the report that the others fill in.
        let external = columns! { ""
            client [Text: client_name, set_client_name] "`h123`, or the name of the external client";
            external_version [external? version]
                "version that the external client reports; null for h123, as are all columns below (or false, or empty)";
            external_http [external? http] "HTTP version of all responses; null where the client does not report one for all";
            external_begins [external? begins] "event at which the client's times begin; null where unknown";
            external_has_row_bytes [external? has_row_bytes] "whether its rows contain response body bytes";
            external_not_reported [external? not_reported] "metrics and checks that lack data, and why";
            external_ok_count [external? requests_ok] "requests without a row that succeeded";
            external_took_ns [external? took_ns]
                "duration of all requests without rows, by the client's clock; null where not reported";
            external_body_bytes [external? body_bytes] "response body bytes of all requests; null where not reported";
            external_connections_count [external? connections] "connections opened; null where not reported";
            external_refused_count [Integer or null: |r| failures(r, REFUSED), |r, value| add_failures(r, REFUSED, value)]
                "requests without a row whose connection was refused";
            external_closed_count [Integer or null: |r| failures(r, CLOSED), |r, value| add_failures(r, CLOSED, value)]
                "requests without a row whose connection closed before the response was complete";
            external_timeout_count [Integer or null: |r| failures(r, TIMEOUT), |r, value| add_failures(r, TIMEOUT, value)]
                "requests without a row that exceeded a time limit";
            external_wrong_status_count [Integer or null: |r| failures(r, STATUS), |r, value| add_failures(r, STATUS, value)]
                "requests without a row that had an unexpected status code";
            external_wrong_length_count [Integer or null: |r| failures(r, LENGTH), |r, value| add_failures(r, LENGTH, value)]
                "requests without a row that had an unexpected body length";
            external_times_ns [external? times_ns]
                "distinct times, from sent to done, of requests without a row that succeeded";
            external_times_count [external? times_requests] "number of requests that took each of these times";
        };
        join([own, external])
    }
}

impl Table for ServerReport {
    const NAME: &'static str = "servers";
    const MEANING: &'static str = "one row per server, in the order of the chains";

    fn columns() -> Vec<Column<Self>> {
        columns! { ""
            name [name] "name of the server's description";
            version [version] "version that the server reports";
            ready_after_ns [ready_after_ns] "time from start to ready";
            cpu_user_ns [cpu_user_ns] "CPU time of all its processes in user space during the run";
            cpu_system_ns [cpu_system_ns] "CPU time of all its processes in the kernel during the run";
            run_queue_ns [run_queue_ns] "time that its threads were runnable but not running during the run";
            was_killed [was_killed] "whether it was killed after the run because it did not stop in time";
            log_fault [log_fault]
                "log that reached 1 GiB, or, with server time, what its access log lacks; null if complete";
            sends_congestion_control [sends.congestion_control]
                "QUIC: congestion control; null, as in the columns below, where the server's description does not say";
            sends_initial_window [sends.initial_window] "QUIC: initial congestion window in packets";
            sends_pacing [sends.pacing] "QUIC: whether packets are paced, `yes` or `no`";
            sends_gso [sends.gso] "QUIC: whether packets leave in batches (UDP segmentation offload), `yes` or `no`";
            sends_tls_records [sends.tls_records] "TLS: size of records in bytes, or `dynamic`";
            concurrency [concurrency]
                "connections that its workers serve at the same time; null where the server's description does not say";
        }
    }
}

impl Table for ServerRequest {
    const NAME: &'static str = "server_requests";
    const MEANING: &'static str =
        "one row per request that a server's log names, if the study has `server_time = true`";

    fn group(&self) -> u16 {
        self.group
    }

    fn columns() -> Vec<Column<Self>> {
        columns! { ""
            server [server] "position of the server in the chain; 0 is the one that clients connect to";
            group [group] "`group` of the request in the table `requests`";
            request [request] "`request` of the request in the table `requests`";
            request_time_ns [request_time_ns] "time that the request took at the server; `source` determines its first and last event";
            precision_ns [precision_ns] "rounding, or uncertainty, of `request_time_ns`";
            source [source] "where `request_time_ns` comes from: `log`, or `packets` at the server's end of the link";
            log_time_ns [log_time_ns] "time in the server's log; null where `source` is `log`";
            arrived_ns [arrived_ns]
                "when the request's last packet reached the server, on the clock of `requests`; null without packets";
            first_sent_ns [first_sent_ns]
                "when the response's first packet left the server; null also where it may have belonged to TLS";
            sent_ns [sent_ns] "when the response's last packet first left the server; null without packets";
            logged_unix_ns [logged_unix_ns] "timestamp in the log, Unix time; for people, never subtracted";
            status [status] "status code in the log";
            body_bytes [body_bytes] "body bytes sent, according to the log";
            remote_port [remote_port] "client's port, according to the log";
        }
    }
}

impl Table for PlayerEvent {
    const NAME: &'static str = "player";
    const MEANING: &'static str = "one row per event of a video player, in chronological order";

    fn group(&self) -> u16 {
        self.group
    }

    fn columns() -> Vec<Column<Self>> {
        columns! { ""
            group [group] "number of the client group in the run";
            client [client] "number of the client in the group";
            at_ns [at_ns] "when it happened, on the clock of the table `requests`";
            event [what]
                "`opened` (a browser's player got the manifest), `requested`, `arrived`, `playing` (started or resumed), \
                 `stalled`, `ended`, `failed`, `abandoned` (cancelled for a lower representation), `seeked` or `gave_up`";
            track [track] "`audio` or `video`; null for playback, which needs all tracks";
            segment [segment] "the event's segment, from 0; for playback, the segment of the video shown or due";
            segment_ns [segment_ns] "duration of that segment";
            representation_bits_per_s [bits_per_s] "bit rate of that segment's representation";
            buffered_ns [buffered_ns] "media that can be played (arrived in every track, not yet shown) after the event";
            track_buffered_ns [track_buffered_ns] "media of the event's track that arrived and was not yet shown";
            latency_ns [latency_ns] "how far playback is behind the live edge; null for media on demand";
            frames [frames] "pictures that were due until then; null for players that decode nothing";
            dropped_frames [dropped_frames] "those of them that were not shown, because they were late";
            fault [fault] "why the player gave up; null if it did not";
        }
    }
}

impl Table for PageEvents {
    const NAME: &'static str = "page_events";
    const MEANING: &'static str = "one row per page load of a browser; timestamps as in the table `requests`, null for what did not happen";

    fn group(&self) -> u16 {
        self.group
    }

    fn columns() -> Vec<Column<Self>> {
        columns! { ""
            group [group] "number of the client group in the run";
            client [client] "number of the client in the group";
            began_ns [began_ns] "start of the navigation";
            dns_began_ns [dns_began_ns] "start of the document's DNS lookup";
            dns_ended_ns [dns_ended_ns] "end of the document's DNS lookup";
            connect_began_ns [connect_began_ns]
                "start of the TCP connect for the document; null for QUIC, and where a connection was reused";
            connect_ended_ns [connect_ended_ns] "end of the TCP connect";
            handshake_began_ns [handshake_began_ns]
                "start of the handshake of TLS or QUIC for the document; null for cleartext, and where a connection was reused";
            handshake_ended_ns [handshake_ended_ns] "end of the handshake of TLS or QUIC";
            sent_ns [sent_ns] "when the request for the document was sent, the last one after redirects";
            first_byte_ns [first_byte_ns] "when the header of the document's response was read";
            done_ns [done_ns] "when the document's last byte was read";
            first_contentful_paint_ns [first_contentful_paint_ns] "first paint of text or an image";
            largest_contentful_paint_ns [largest_contentful_paint_ns]
                "paint of the largest text or image, rounded to milliseconds by Chromium";
            dom_content_loaded_ns [dom_content_loaded_ns] "the event `DOMContentLoaded`";
            loaded_ns [loaded_ns] "the event `load`";
            layout_shift_millionths [layout_shift_millionths] "cumulative layout shift × 1 000 000";
            console_errors_count [console_errors] "errors on the console, and exceptions";
            console [console] "the first of them";
            is_sandboxed [is_sandboxed] "whether the browser ran in its sandbox, which Chromium does not have as root";
        }
    }
}

/// The bytes of a connection; null if the client does not report them.
fn bytes_of(row: &Row<ConnectionRow>, bytes: u64) -> Value<'static> {
    if row.item.lacks_bytes { Value::Null } else { Value::Integer(bytes) }
}

fn set_bytes(
    row: &mut Row<ConnectionRow>,
    value: Value<'_>,
    field: fn(&mut ConnectionRow) -> &mut u64,
) -> Result<(), String> {
    row.item.lacks_bytes = matches!(value, Value::Null);
    *field(&mut row.item) = Option::<u64>::read(value)?.unwrap_or(0);
    Ok(())
}

impl Table for Calibration {
    const NAME: &'static str = "round_trips";
    const MEANING: &'static str =
        "one row per client group: the reference round trips of its path, without traffic, before the run";

    fn group(&self) -> u16 {
        self.group
    }

    fn columns() -> Vec<Column<Self>> {
        columns! { ""
            group [group] "number of the client group in the run";
            expected_rtt_ns [expected_rtt_ns] "configured round-trip time of the path";
            sent_count [sent] "probes sent";
            rtt_ns [rtt_ns] "round-trip time of each probe that came back";
        }
    }
}

impl Table for LinkReport {
    const NAME: &'static str = "links";
    const MEANING: &'static str =
        "one row per emulated link; `up_` is from the client's side to the server's side";

    fn columns() -> Vec<Column<Self>> {
        let link = columns! { ""
            link [link] "name of the link";
            backend [backend] "what emulated it: `user-space` or `netem`";
            realtime [realtime] "whether the emulator had real-time priority; false where the kernel emulates";
            cpu_ns [cpu_ns] "CPU time of the emulator's thread; null where the kernel emulates";
        };
        join([link, direction_columns!("up_", up), direction_columns!("down_", down)])
    }
}

impl Table for Reading {
    const NAME: &'static str = "monitor";
    const MEANING: &'static str = "one row per round, subject and quantity; timestamps are ns since the run's start, counters start at 0 there";

    fn columns() -> Vec<Column<Self>> {
        columns! { ""
            at_ns [at_ns] "start of the round; all its rows have this timestamp";
            node [subject.node] "name of the node; null for h123 itself and for the whole machine";
            kind [subject.kind] "kind of subject: `process`, `thread`, `core`, `sockets`, `interface` or `protocols`";
            subject [subject.name] "name of the subject, such as `nginx: worker process` or `eth0`";
            id [subject.id] "number of the process, thread or core; 0 for others";
            quantity [quantity] "what was read; its name ends with its unit";
            value [value] "counter: change since the run's start; gauge: value at that time";
        }
    }
}
