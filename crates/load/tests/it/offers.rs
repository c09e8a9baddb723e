//! Resources that servers push and hint at: the page loader uses them, and counts what it cannot use.

use std::io::{Read, Write};
use std::net::TcpStream;

use model::delivery::Delivery;
use model::error::Source;
use model::sample::{Cause, Hints, Pushes};
use model::{Page, Variant, Workload};

use super::hostile::{Ending, Hostile, assignment, frame, literal, say};
use super::{Origin, failures, run};

const PAGE: &str = "
    title = 'x'
    [[resource]]
    path = '/p/'
    kind = 'html'
    sizes = ['1kB']
    [[resource]]
    path = '/p/a.css'
    kind = 'css'
    named_by = '/p/'
    sizes = ['1kB']
    [[resource]]
    path = '/p/b.woff2'
    kind = 'font'
    named_by = '/p/a.css'
    sizes = ['70kB']
";

fn page(delivery: Delivery) -> Page {
    Page { delivery, ..Page::parse("p", Source { file: "p", text: PAGE }).unwrap() }
}

#[test]
fn pushed_resources_are_not_requested() {
    let page = page(Delivery { push: vec![1, 2], ..Delivery::default() });
    let origin = Origin::start(vec![page.clone()]);
    for variant in [Variant::H2c, Variant::H2] {
        let report = run(&origin.assignment(variant, Workload::Page(page.clone())));
        assert!(failures(&report).is_empty(), "{variant}: {:?}", failures(&report));
        let rows: Vec<_> =
            report.samples.iter().map(|row| (row.url, row.cause, row.sent_ns.is_some())).collect();
        assert_eq!(
            rows,
            [(0, Cause::Due, true), (1, Cause::Push, false), (2, Cause::Push, false)],
            "{variant}"
        );
        let pushed = Pushes { whole: 2, used: 2, body_bytes: 71_000, ..Pushes::default() };
        assert_eq!(report.connections[0].pushed, pushed, "{variant}");
        assert!(report.samples.iter().all(|row| row.first_byte_ns >= Some(row.intended_ns)));
    }
    // The same server, and a client that does not accept push.
    let plain = Workload::Page(Page { delivery: Delivery::default(), ..page });
    let report = run(&origin.assignment(Variant::H2c, plain));
    assert!(failures(&report).is_empty() && report.samples.iter().all(|row| row.cause == Cause::Due));
    assert_eq!(report.connections[0].pushed, Pushes::default());
}

#[test]
fn hinted_resources_are_requested_before_the_document_arrives() {
    let delivery =
        Delivery { early_hints: vec![1, 2], document_delay_ns: 300_000_000, ..Delivery::default() };
    let page = page(delivery);
    let origin = Origin::start(vec![page.clone()]);
    for variant in [Variant::H2c, Variant::H2, Variant::H3] {
        let report = run(&origin.assignment(variant, Workload::Page(page.clone())));
        assert!(failures(&report).is_empty(), "{variant}: {:?}", failures(&report));
        let [document, style, font] = &report.samples[..] else { panic!("{variant}: 3 requests") };
        assert_eq!([style.cause, font.cause], [Cause::Hint; 2], "{variant}");
        assert!(style.sent_ns < document.first_byte_ns && font.sent_ns < document.first_byte_ns, "{variant}");
        assert_eq!(report.connections[0].hinted, Hints { used: 2, ..Hints::default() }, "{variant}");
    }
    // The origin sends no hints over HTTP/1.1; the document takes as long.
    let report = run(&origin.assignment(Variant::H1, Workload::Page(page)));
    assert!(report.samples.iter().all(|row| row.cause == Cause::Due));
    assert!(report.samples[0].service_time_ns() >= Some(300_000_000));
}

/// PUSH_PROMISE on stream 1 of GET for this URL.
fn promise(stream: u32, authority: &str, path: &str) -> Vec<u8> {
    let fields = [literal(":authority", authority), literal(":path", path)].concat();
    // `:method: GET` and `:scheme: http`, indexed.
    frame(5, 4, 1, &[&stream.to_be_bytes()[..], &[0x82, 0x86], &fields].concat())
}

/// A response with `:status: 200`.
fn response(stream: u32, body: &[u8]) -> Vec<u8> {
    [frame(1, 4, stream, &[0x88]), frame(0, 1, stream, body)].concat()
}

fn take_request(stream: &mut TcpStream) {
    stream.read_exact(&mut [0; 100]).unwrap();
}

#[test]
fn promises_that_are_of_no_use_are_counted() {
    let mut page = page(Delivery { push: vec![1], ..Delivery::default() });
    page.resources.truncate(2);
    let bodies = [0, 1].map(|index| workload::content::page_body(&page, index));
    let server = Hostile::new(move |mut stream| {
        let authority = format!("localhost:{}", stream.local_addr().unwrap().port());
        take_request(&mut stream);
        let pieces = [
            frame(4, 0, 0, &[]),
            promise(2, "other.test", "/p/a.css"),
            promise(4, &authority, "/p/x.css"),
            promise(6, &authority, "/p/"),
            promise(8, &authority, "/p/a.css"),
            promise(10, &authority, "/p/a.css"),
            response(1, &bodies[0]),
            response(2, b"in vain"),
            response(4, b"discarded"),
            response(8, &bodies[1]),
        ];
        say(&mut stream, &[pieces.concat()], Ending::Hold);
    });
    let mut assignment = assignment(Variant::H2c, server.address, 1);
    assignment.workload = Workload::Page(page);
    let report = run(&assignment);
    assert!(failures(&report).is_empty(), "{:?}", failures(&report));
    assert_eq!(report.samples.len(), 2);
    let pushed = Pushes {
        whole: 2,
        used: 1,
        broken: 0,
        refused: 1,
        late: 2,
        body_bytes: 1_000 + 7 + 9,
        wasted_bytes: 7 + 9,
    };
    assert_eq!(report.connections[0].pushed, pushed);
}

#[test]
fn hints_over_http1_are_used_and_broken_ones_are_not() {
    let mut page = page(Delivery::default());
    page.resources.truncate(2);
    let bodies = [0, 1].map(|index| workload::content::page_body(&page, index));
    let server = Hostile::new(move |mut stream| {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read(&mut byte).unwrap_or(0) == 0 {
                return;
            }
            head.push(byte[0]);
        }
        let is_document = head.starts_with(b"GET /p/ ");
        let hints = "HTTP/1.1 103 Early Hints\r\nlink: <broken; rel=preload\r\n\
            Link: </p/a.css>; rel=preload; as=style, </p/x.css>; rel=preload, </p/>;rel=preload\r\n\r\n";
        let begin = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1000\r\n\r\n";
        let text = if is_document { [hints, begin].concat() } else { begin.to_owned() };
        let body = &bodies[usize::from(!is_document)];
        stream.write_all(&[text.as_bytes(), body].concat()).unwrap();
    });
    let mut assignment = assignment(Variant::H1, server.address, 1);
    assignment.workload = Workload::Page(page);
    let report = run(&assignment);
    assert!(failures(&report).is_empty(), "{:?}", failures(&report));
    let causes: Vec<Cause> = report.samples.iter().map(|row| row.cause).collect();
    assert_eq!(causes, [Cause::Due, Cause::Hint]);
    let document = report.samples[0].connection.unwrap();
    let row = report.connections.iter().find(|row| row.connection == document).unwrap();
    assert_eq!(row.hinted, Hints { used: 1, late: 1, unused: 1 });
}
