//! HTTP/2 against the server of the `h2` crate over an in-memory pipe.

use std::collections::VecDeque;

use bytes::Bytes;
use engine::h2::{Http2, Limits};
use engine::{Protocol, Request};
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, Response};
use model::pins::Http2Pins;
use model::sample::FailureKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::{Log, LoggedEvent, get, request};

/// Bytes that tell where in a body they stand.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|position| u8::try_from((position * 7 + position / 251) & 0xff).unwrap()).collect()
}

/// Answers until the client goes; `/last` begins the server's own farewell.
async fn serve(io: DuplexStream, builder: Builder) {
    let mut connection = builder.handshake::<_, Bytes>(io).await.unwrap();
    while let Some(accepted) = connection.accept().await {
        let Ok((request, respond)) = accepted else { return };
        if request.uri().path() == "/last" {
            connection.graceful_shutdown();
        }
        tokio::spawn(answer(request, respond));
    }
}

async fn answer(request: http::Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    let path = request.uri().path().to_owned();
    let mut response = Response::builder().header("server", "h2").header("x-path", &path);
    match path.as_str() {
        "/reset" => return respond.send_reset(Reason::INTERNAL_ERROR),
        "/hints" => respond.send_informational(Response::builder().status(103).body(()).unwrap()).unwrap(),
        _ => {}
    }
    let mut body = request.into_body();
    let mut content = match path.strip_prefix("/bytes/") {
        Some(length) => pattern(length.parse().unwrap()),
        None => Vec::new(),
    };
    while let Some(piece) = body.data().await {
        let Ok(piece) = piece else { return };
        content.extend_from_slice(&piece);
        body.flow_control().release_capacity(piece.len()).unwrap();
    }
    if path.starts_with("/bytes/") {
        response = response.header("content-length", content.len());
    }
    let Ok(mut send) = respond.send_response(response.body(()).unwrap(), false) else { return };
    if send.send_data(content.into(), path != "/hints").is_ok() && path == "/hints" {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", "0".parse().unwrap());
        send.send_trailers(trailers).unwrap();
    }
}

/// Sends the requests as 0, 1, 2 … and reads until each has had its last event; `cancel` is given up when it
/// has a head.
async fn drive(http: &mut Http2, io: DuplexStream, requests: &[Request], cancel: Option<u64>) -> Log {
    let (mut reading, mut writing) = tokio::io::split(io);
    let mut queue: VecDeque<(u64, &Request)> = (0..).zip(requests).collect();
    let (mut log, mut out, mut buffer) = (Log::default(), Vec::new(), [0; 5000]);
    let mut cancel = cancel;
    // Before the server's SETTINGS 100 requests would be allowed, and refused by a server that allows 5.
    let mut greeted = false;
    http.start();
    loop {
        while greeted
            && http.available_requests() > 0
            && let Some((id, request)) = queue.pop_front()
        {
            http.send_request(id, request).unwrap();
        }
        if let Some(id) = cancel
            && log.0.iter().any(|seen| matches!(seen, LoggedEvent::Head(head, _) if *head == id))
        {
            http.cancel(id);
            cancel = None;
            log.0.push(LoggedEvent::End(id));
        }
        http.poll_output(&mut out);
        let over =
            log.0.iter().filter(|seen| matches!(seen, LoggedEvent::End(_) | LoggedEvent::Failed(..))).count();
        if (over == requests.len() && out.is_empty()) || http.is_closed() {
            return log;
        }
        tokio::select! {
            written = writing.write(&out), if !out.is_empty() => { out.drain(..written.unwrap()); }
            read = reading.read(&mut buffer) => match read.unwrap() {
                0 => http.handle_end(&mut |event| log.take(event)),
                length => {
                    http.handle_bytes(&buffer[..length], &mut |event| log.take(event));
                    greeted = true;
                }
            },
        }
    }
}

/// Runs `requests` against a server that `builder` describes, over a pipe that holds `pipe` bytes.
fn run(pins: &Http2Pins, builder: &Builder, pipe: usize, requests: &[Request], cancel: Option<u64>) -> Log {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (client, server) = tokio::io::duplex(pipe);
        let server = tokio::spawn(serve(server, builder.clone()));
        let mut http = Http2::new(pins, Limits::default());
        let log = drive(&mut http, client, requests, cancel).await;
        server.await.unwrap();
        log
    })
}

#[test]
fn bodies_much_larger_than_the_windows_arrive_completely_in_both_directions() {
    let pins =
        Http2Pins { stream_window_bytes: 20_000, connection_window_bytes: 70_000, ..Http2Pins::default() };
    let mut builder = Builder::new();
    builder.initial_window_size(5000).max_frame_size(20_000);
    let upload = pattern(700_000);
    let requests =
        [get("/bytes/900000"), request("POST", "/echo", &upload), get("/bytes/300000"), get("/bytes/0")];
    for pipe in [100, 4096, 1 << 20] {
        let log = run(&pins, &builder, pipe, &requests, None);
        assert!(log.body_of(0) == pattern(900_000), "pipe of {pipe}");
        assert!(log.body_of(1) == upload, "pipe of {pipe}");
        assert!(log.body_of(2) == pattern(300_000), "pipe of {pipe}");
        assert!((0..4).all(|id| log.has_ended(id)), "pipe of {pipe}");
    }
}

#[test]
fn header_tables_of_any_size_stay_in_step() {
    for server_table in [0, 100, 4096, 65_536] {
        for client_table in [0, 200, 4096, 65_536] {
            let pins = Http2Pins { header_table_bytes: client_table, ..Http2Pins::default() };
            let mut builder = Builder::new();
            builder.header_table_size(server_table).max_concurrent_streams(5);
            let requests: Vec<Request> =
                (0..300).map(|number| get(&format!("/bytes/{}", number % 17))).collect();
            let log = run(&pins, &builder, 10_000, &requests, None);
            for (id, number) in (0..300u64).zip(0..300usize) {
                assert!(log.has_ended(id), "tables of {server_table} and {client_table}, request {id}");
                assert_eq!(log.head_of(id).status, 200);
                assert_eq!(log.body_of(id), pattern(number % 17));
            }
        }
    }
}

#[test]
fn hints_trailers_resets_and_cancelling() {
    let mut requests = vec![get("/hints"), get("/reset"), get("/bytes/10000000")];
    requests.extend((0..50).map(|number| get(&format!("/bytes/{number}"))));
    let log = run(&Http2Pins::default(), &Builder::new(), 4096, &requests, Some(2));
    assert!(log.0.contains(&LoggedEvent::Informational(0, 103, String::new())));
    assert!(log.has_ended(0));
    assert_eq!(log.head_of(0).status, 200);
    let (kind, reason) = log.failure_of(1);
    assert_eq!(kind, FailureKind::Reset);
    assert!(reason.contains("INTERNAL_ERROR"), "{reason}");
    assert!(log.body_of(2).len() < 10_000_000);
    assert!((3..53).all(|id| log.has_ended(id)));
}

#[test]
fn the_servers_farewell_lets_the_open_requests_end() {
    let requests = [get("/bytes/500000"), get("/last")];
    let log = run(&Http2Pins::default(), &Builder::new(), 4096, &requests, None);
    assert!(log.body_of(0) == pattern(500_000));
    assert!(log.has_ended(0) && log.has_ended(1));
}
