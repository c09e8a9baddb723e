//! Events of QUIC connections, one file for each, for qvis and other readers of qlog
//! (draft-ietf-quic-qlog-main-schema-02).

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use engine::options::Qlog;
use model::number;
use serde_json::{Value, json};

use crate::clock::Clock;

/// The most connections of a worker with a file; further ones have none.
const MOST_FILES: u32 = 256;
/// The size of the write buffer.
const BUFFER_BYTES: usize = 1 << 16;
/// The most bytes of a record.
const MOST_RECORD_BYTES: usize = 1 << 16;
/// The record separator of a JSON text sequence (RFC 7464).
const RECORD: &str = "\u{1e}";

/// A folder of `CONNECTION_client.sqlog`.
#[derive(Debug)]
pub(crate) struct QlogFolder {
    folder: PathBuf,
    zero_unix_ns: u64,
    files: AtomicU32,
}

impl QlogFolder {
    /// Opens the folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub(crate) fn open(folder: &str, clock: &Clock) -> Result<QlogFolder> {
        fs::create_dir_all(folder).with_context(|| format!("creating the folder for qlog {folder}"))?;
        Ok(QlogFolder { folder: folder.into(), zero_unix_ns: clock.zero_unix_ns(), files: AtomicU32::new(0) })
    }

    /// Checks that it is a folder or does not exist yet.
    ///
    /// # Errors
    /// It is not a folder.
    pub(crate) fn check(folder: &str) -> Result<()> {
        let path = Path::new(folder);
        ensure!(path.is_dir() || !path.exists(), "{folder} is not a folder; qlog needs one");
        Ok(())
    }
}

impl Qlog for QlogFolder {
    fn begin(&self, original_destination_id: &str) -> Option<Box<dyn Write + Send + Sync>> {
        if self.files.fetch_add(1, Ordering::Relaxed) >= MOST_FILES {
            return None;
        }
        // A full disk must not end a connection.
        let path = self.folder.join(format!("{original_destination_id}_client.sqlog"));
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, File::create(path).ok()?);
        writeln!(file, "{RECORD}{}", header(original_destination_id, self.zero_unix_ns)).ok()?;
        Some(Box::new(Events::new(file)))
    }
}

/// The first record; the library's own has neither vantage point nor reference time.
fn header(original_destination_id: &str, zero_unix_ns: u64) -> serde_json::Value {
    json!({
        "qlog_version": "0.3",
        "qlog_format": "JSON-SEQ",
        "title": "h123 load",
        "trace": {
            "vantage_point": { "name": "h123 load", "type": "client" },
            "common_fields": {
                "ODCID": original_destination_id,
                "protocol_type": ["QUIC", "HTTP3"],
                "time_format": "relative",
                "reference_time": number::float(zero_unix_ns) / 1e6,
            },
        },
    })
}

/// Corrects the library's records and writes all but the first.
struct Events<W> {
    file: W,
    /// The incomplete record.
    record: Vec<u8>,
    has_begun: bool,
    last_ms: f64,
}

impl<W> Events<W> {
    fn new(file: W) -> Self {
        Events { file, record: Vec::new(), has_begun: false, last_ms: 0.0 }
    }
}

impl<W: Write> Write for Events<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Line ends within strings are escaped.
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            if self.record.len() < MOST_RECORD_BYTES {
                self.record.extend_from_slice(bytes);
            }
            return Ok(bytes.len());
        };
        self.record.extend_from_slice(&bytes[..end]);
        if self.has_begun
            && let Some(event) = corrected(&self.record, &mut self.last_ms)
        {
            writeln!(self.file, "{RECORD}{event}")?;
        }
        self.has_begun = true;
        self.record.clear();
        Ok(end + 1)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// An event in the draft's form: round trips in milliseconds, where quinn-proto 0.11 has seconds; no value
/// for "no limit"; no group, which would change with the server's connection ID; and in order of time, which
/// the library does not guarantee.
fn corrected(record: &[u8], last_ms: &mut f64) -> Option<Value> {
    let record = record.strip_prefix(RECORD.as_bytes()).unwrap_or(record);
    let mut event: Value = serde_json::from_slice(record).ok()?;
    let time_ms = event["time"].as_f64()?.max(*last_ms);
    *last_ms = time_ms;
    let fields = event.as_object_mut()?;
    fields.insert("time".to_owned(), json!(time_ms));
    fields.remove("group_id");
    if fields.get("name").is_some_and(|name| name == "recovery:metrics_updated") {
        let data = fields.get_mut("data")?.as_object_mut()?;
        for name in ["min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance"] {
            if let Some(seconds) = data.get(name).and_then(Value::as_f64) {
                data.insert(name.to_owned(), json!(seconds * 1e3));
            }
        }
        data.retain(|_, value| value.as_u64() != Some(u64::MAX));
    }
    Some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_corrected_in_pieces_of_any_size() {
        let library = [
            r#"{"qlog_version":"0.3"}"#,
            r#"{"time":2.5,"name":"transport:packet_sent","data":{"header":{}},"group_id":"ab"}"#,
            r#"{"time":2.0,"name":"recovery:metrics_updated","data":{"min_rtt":0.25,"ssthresh":18446744073709551615}}"#,
        ];
        let given: String = library.iter().map(|record| format!("{RECORD}{record}\n")).collect();
        for piece in [1, 2, 5, 1000] {
            let mut events = Events::new(Vec::new());
            for bytes in given.as_bytes().chunks(piece) {
                events.write_all(bytes).unwrap();
            }
            let text = String::from_utf8(events.file).unwrap();
            let records: Vec<Value> = text
                .lines()
                .map(|line| serde_json::from_str(line.strip_prefix(RECORD).unwrap()).unwrap())
                .collect();
            let expected = [
                json!({ "time": 2.5, "name": "transport:packet_sent", "data": { "header": {} } }),
                json!({ "time": 2.5, "name": "recovery:metrics_updated", "data": { "min_rtt": 250.0 } }),
            ];
            assert_eq!(records, expected, "{piece}");
        }
    }

    #[test]
    fn only_folders_are_accepted() {
        let error = QlogFolder::check("/dev/null").unwrap_err().to_string();
        assert_eq!(error, "/dev/null is not a folder; qlog needs one");
        assert!(QlogFolder::check("/").is_ok() && QlogFolder::check("/no/such/folder").is_ok());
    }
}
