//! Any bytes for HTTP/3's decoders, within QUIC and so without its keys; for [`crate::fuzz_targets`].

use super::peer_streams::{PeerStreams, Verdict};
use super::qpack::{Decoder, Encoder};
use super::response::{Fields, Response, ResponseId};

/// The number of response streams; higher numbers are the server's unidirectional streams.
const RESPONSES: u8 = 4;

/// Pieces of streams: number, length, bytes.
pub(crate) fn streams(data: &[u8]) {
    let mut fields = Fields::new(Decoder::new(4096, 2));
    let mut encoder = Encoder::new(4096, 0);
    let mut peer = PeerStreams::default();
    let mut responses: [Response; RESPONSES as usize] = Default::default();
    let mut sink = |_: crate::Event<'_>| {};
    let mut rest = data;
    while let [number, length, behind @ ..] = rest {
        let (bytes, behind) = behind.split_at(behind.len().min(usize::from(*length)));
        rest = behind;
        let number = number % (2 * RESPONSES);
        if let Some(response) = responses.get_mut(usize::from(number)) {
            let at = ResponseId { stream: u64::from(number) * 4, request: u64::from(number) };
            if !response.is_blocked() && response.take(at, bytes, &mut fields, &mut sink).is_err() {
                return;
            }
            continue;
        }
        let id = u64::from(number) * 4 + 3;
        if !peer.contains(id) {
            peer.opened(id);
        }
        match peer.take(id, bytes, fields.decoder(), &mut encoder) {
            Ok(Verdict::Read | Verdict::Stop) => {}
            Err(_) => return,
        }
        while let Some(stream) = fields.decoder().poll_unblocked() {
            let Some(response) = usize::try_from(stream / 4).ok().and_then(|at| responses.get_mut(at)) else {
                return;
            };
            if response.resume(ResponseId { stream, request: stream / 4 }, &mut fields, &mut sink).is_err() {
                return;
            }
        }
    }
}

/// Instructions, sections and feedback: kind, length, bytes.
pub(crate) fn qpack(data: &[u8]) {
    let mut decoder = Decoder::new(4096, 2);
    let mut encoder = Encoder::new(4096, 1);
    encoder.set_peer_limits(4096, 1);
    let mut stream = 0;
    let mut rest = data;
    while let [kind, length, behind @ ..] = rest {
        let (bytes, behind) = behind.split_at(behind.len().min(usize::from(*length)));
        rest = behind;
        stream += 4;
        let result = match kind % 4 {
            0 => decoder.handle_instructions(bytes),
            1 => decoder.section(stream, bytes, |_, _| {}).map(|_| ()),
            2 => encoder.handle_feedback(bytes),
            _ => {
                let line = (&b"x-any"[..], bytes, super::qpack::Indexing::Insert);
                let references = encoder.encode(stream, [line], &mut Vec::new());
                references.into_iter().for_each(|references| encoder.track(stream, references));
                Ok(())
            }
        };
        if result.is_err() {
            return;
        }
        assert!(decoder.table_size() <= 4096 && decoder.blocked_streams() <= 2);
        let (inserts, known) = encoder.inserts();
        assert!(known <= inserts);
    }
}
