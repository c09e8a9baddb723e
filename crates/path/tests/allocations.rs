//! A path that has warmed up allocates nothing, whatever it does to packets. (Copies of duplicated packets
//! are the exception: the caller owns the packets' buffers, so a copy needs a new one.)

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use model::Network;
use model::error::Source;
use path::{Frame, LinkDirection, Path, Seeds};

/// The system's allocator, which counts what this thread asks for.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches a plain thread-local number
// only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const PACKETS: u64 = 100_000;
const GAP_NS: u64 = 100_000;

#[test]
fn a_warm_path_allocates_nothing() {
    for lines in [
        "delay = '15ms'\nrate = '100Mbit/s'\nqueue = '1bdp'",
        "delay = '15ms'\nrate = '100Mbit/s'\nqueue = { limit = '1bdp', discipline = 'codel' }",
        "delay = '15ms'\nrate = '100Mbit/s'\nqueue = { limit = '100 packets', discipline = 'fq-codel' }",
        "delay = '15ms'\njitter = { spread = '3ms', order = 'free' }\nreorder = '3%'\nloss = '1%'",
        "delay = '15ms'\njitter = '1ms'\nloss = { share = '2%', burst = '4 packets' }",
        "delay = '15ms'\nrate = { mean = '100Mbit/s', steps = { every = '1s', spread = '30%' } }\n\
         outages = { every = '1s', lasts = '20ms', packets = 'wait' }",
    ] {
        let text = format!("title = 'x'\nsource = 'y'\n{lines}\n");
        let network = Network::parse("n", Source { file: "n.toml", text: &text }).unwrap();
        let mut path = Path::of_network(&network, LinkDirection::Down, Seeds::run(1, LinkDirection::Down), 0);
        let mut spare: Vec<Frame> = (0..10_000).map(|_| Frame(vec![0x45; 1514])).collect();
        let mut at_half = 0;
        for packet in 0..2 * PACKETS {
            if packet == PACKETS {
                at_half = ALLOCATIONS.get();
            }
            let now_ns = packet * GAP_NS;
            let mut frame = spare.pop().unwrap();
            frame.0[34..42].copy_from_slice(&(packet % 7).to_be_bytes());
            path.handle_packet(now_ns, 1514, frame);
            spare.extend(std::iter::from_fn(|| path.poll_lost()).map(|lost| lost.packet));
            spare.extend(std::iter::from_fn(|| path.poll_release(now_ns)).map(|release| release.packet));
        }
        assert!(path.counters().packets_out > PACKETS, "{lines}");
        assert_eq!(
            ALLOCATIONS.get() - at_half,
            0,
            "allocations in {PACKETS} packets of a warm path: {lines}"
        );
    }
}
