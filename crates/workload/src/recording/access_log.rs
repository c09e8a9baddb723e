//! Timing scripts of access logs.

use model::formats::shown;
use model::options::ExpectedResponse;
use model::url::Url;

use super::{Choice, Exchange, Head, Recording, RecordingError, Waits, class_of, is_kept_path, script_of};
use crate::formats::access_log::{LogFormat, LoggedRequest};

const FAILED: &str = "that failed";
const WITH_BODY: &str = "with a body";
const OF_OTHERS: &str = "of other clients";
const UNREADABLE: &str = "unreadable lines";
const INCOMPLETE: &str = "without a path or a time stamp";

/// Reads the session of one client from an access log, line by line.
#[derive(Debug)]
pub struct LogRecorder<'f> {
    format: &'f LogFormat,
    choice: Choice,
    /// The client, as the log has it; all of them if `None`.
    client: Option<String>,
    exchanges: Vec<Exchange>,
    recording: Recording,
    first_fault: Option<String>,
    lines: u64,
}

impl<'f> LogRecorder<'f> {
    /// A recorder of a client's requests; of all requests if no client is named.
    ///
    /// # Errors
    /// The log has no field with the path or the time.
    pub fn new(
        format: &'f LogFormat,
        client: Option<String>,
        choice: Choice,
    ) -> Result<LogRecorder<'f>, RecordingError> {
        let missing = [("path", format.path.is_some()), ("time", format.time.is_some())];
        if let Some((field, _)) = missing.into_iter().find(|(_, has)| !has) {
            return Err(RecordingError(format!(
                "the log's format has no field for the {field} of a request; describe one that the log contains"
            )));
        }
        let (exchanges, recording) = (Vec::new(), Recording::default());
        Ok(LogRecorder { format, choice, client, exchanges, recording, first_fault: None, lines: 0 })
    }

    /// Reads the next line, without its line end. A line's time stamp is the end of its request.
    pub fn handle_line(&mut self, line: &[u8]) {
        self.lines += 1;
        let (client, choice) = (self.client.as_deref(), &self.choice);
        let read = self.format.read_any(line, |request| exchange(&request, client, choice));
        let reason = match read {
            Ok(Ok(exchange)) => {
                self.exchanges.push(exchange);
                return;
            }
            Ok(Err(reason)) => reason,
            Err(error) => {
                self.first_fault.get_or_insert_with(|| format!("line {}: {error}", self.lines));
                UNREADABLE
            }
        };
        *self.recording.left_out.entry(reason).or_default() += 1;
    }

    /// The script.
    ///
    /// # Errors
    /// No request is left.
    pub fn finish(self, name: &str) -> Result<Recording, RecordingError> {
        let of_client = self.client.as_ref().map_or(String::new(), |client| format!(", client {client}"));
        let head = Head {
            title: shown(&format!("requests of {name}{of_client}")),
            recorded: "an access log".to_owned(),
            origin: self.choice.origin.clone(),
            variant: None,
        };
        let default = if self.choice.classes.is_empty() { Waits::Nothing } else { Waits::Class };
        let waits = self.choice.waits.unwrap_or(default);
        let script = script_of(self.exchanges, head, waits).map_err(|error| match &self.first_fault {
            Some(fault) => RecordingError(format!("{error}; {fault}")),
            None => error,
        })?;
        Ok(Recording { script, ..self.recording })
    }
}

fn exchange(
    request: &LoggedRequest<'_>,
    client: Option<&str>,
    choice: &Choice,
) -> Result<Exchange, &'static str> {
    if client.is_some_and(|client| request.client.as_deref() != Some(client)) {
        return Err(OF_OTHERS);
    }
    let (Some(path), Some(ended_ns)) = (&request.path, request.logged_unix_ns) else {
        return Err(INCOMPLETE);
    };
    // Some servers log the whole URL of requests over HTTP/2.
    let url = Url::parse(path).ok();
    let path = url.as_ref().map_or(path.as_ref(), |url| url.path.as_str());
    if !is_kept_path(path) {
        return Err(INCOMPLETE);
    }
    if request.method.as_deref().is_some_and(|method| !["GET", "HEAD"].contains(&method)) {
        return Err(WITH_BODY);
    }
    if request.status.is_some_and(|status| !(200..600).contains(&status)) {
        return Err(FAILED);
    }
    Ok(Exchange {
        sent_ns: ended_ns.saturating_sub(request.request_time_ns),
        ended_ns: Some(ended_ns),
        url: path.to_owned(),
        method: request.method.as_deref().filter(|method| *method != "GET").map(str::to_owned),
        class: class_of(choice, path),
        expects: ExpectedResponse {
            status: request.status,
            body_bytes: request.body_bytes,
            body_crc32: None,
        },
        ..Exchange::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::access_log::{LineForm, TimeField, TimeUnit};
    use crate::formats::line_pattern::LinePattern;
    use model::class::RequestClass;

    fn format() -> LogFormat {
        let field = |name: &str, unit| TimeField { field: name.to_owned(), unit };
        LogFormat {
            form: LineForm::Pattern(
                LinePattern::parse("{client} {time} \"{request}\" {status} {bytes} {took}").unwrap(),
            ),
            request_id: None,
            request_time: field("took", TimeUnit::Milliseconds),
            precision_ns: 1_000,
            time: Some(field("time", TimeUnit::Seconds)),
            status: Some("status".to_owned()),
            body_bytes: Some("bytes".to_owned()),
            remote_port: Some("client".to_owned()),
            path: Some("request".to_owned()),
        }
    }

    const LOG: &str = "a 100.500 \"GET /v1 HTTP/2\" 200 10 400\nb 100.600 \"GET /x HTTP/2\" 200 10 1\n\
        a 100.200 \"GET /i HTTP/2\" 200 5 200\na 100.900 \"GET /v2 HTTP/2\" 206 10 300\nnonsense\n\
        a 101.000 \"POST /b HTTP/2\" 200 1 5\na - \"GET /c HTTP/2\" 200 1 5\na 101.1 \"GET /d HTTP/2\" 499 0 5\n";

    #[test]
    fn a_clients_session_becomes_a_script() {
        let format = format();
        let classes = vec![RequestClass { name: "video".into(), paths: vec!["/v*".into()] }];
        let choice = Choice { classes, ..Choice::default() };
        let mut recorder = LogRecorder::new(&format, Some("a".to_owned()), choice).unwrap();
        LOG.lines().for_each(|line| recorder.handle_line(line.as_bytes()));
        let Recording { script, left_out } = recorder.finish("access.log").unwrap();
        assert_eq!(script.title, "requests of access.log, client a");
        let found: Vec<_> = script
            .requests
            .iter()
            .map(|one| {
                (
                    one.url.as_str(),
                    one.at_ns / 1_000_000,
                    &one.after[..],
                    one.gap_ns / 1_000_000,
                    one.expects.status,
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("/i", 0, &[][..], 0, Some(200)),
                ("/v1", 100, &[], 0, Some(200)),
                ("/v2", 600, &[1], 100, Some(206)),
                ("/d", 1095, &[0], 895, Some(499)),
            ]
        );
        let reasons: Vec<(&str, u64)> = left_out.into_iter().collect();
        assert_eq!(reasons, [(OF_OTHERS, 1), (UNREADABLE, 1), (WITH_BODY, 1), (INCOMPLETE, 1)]);
    }

    #[test]
    fn a_log_without_requests_says_why() {
        let format = format();
        let mut recorder = LogRecorder::new(&format, None, Choice::default()).unwrap();
        recorder.handle_line(b"nonsense");
        let error = recorder.finish("a.log").unwrap_err().to_string();
        assert!(
            error.contains("no request is left") && error.contains("line 1: `nonsense` is not"),
            "{error}"
        );
        let lacking = LogFormat { path: None, ..format };
        let error = LogRecorder::new(&lacking, None, Choice::default()).unwrap_err().to_string();
        assert!(error.contains("no field for the path"), "{error}");
    }
}
