//! One interface of the emulator as an AF_PACKET socket: frames come in through a TPACKET_V2 ring with the
//! kernel's time of arrival (packet(7), Documentation/networking/packet_mmap.rst) and leave through
//! `sendmmsg`.
//!
//! TPACKET_V3 would delay frames, because it hands over blocks by a timer.

#![expect(clippy::cast_possible_truncation, reason = "sizes of structures and counts are far below 2^32")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use model::Network;
use model::network::FULL_FRAME_BYTES;

/// A ring holds at least this many frames: 1 MB, or 77 ms of full frames at 100 Mbit/s.
const LEAST_FRAMES: u64 = 640;
/// A ring holds at most this many: 50 ms of full frames at 1 Gbit/s.
const MOST_FRAMES: u64 = 4096;
/// A ring holds what the network brings in a twentieth of a second, while the emulator waits for a CPU.
const PERIODS_PER_S: u64 = 20;
/// All rings of a lab together hold about this many frames, 200 MB, unless they are at their least.
const FRAMES_OF_A_LAB: u64 = 1 << 17;
const BLOCK_BYTES: u32 = 1 << 16;
/// How many frames one system call sends.
pub(crate) const BATCH: usize = 64;
const ETHERNET_HEADER_BYTES: usize = 14;

/// A frame in the ring.
pub(crate) struct Received<'a> {
    /// CLOCK_REALTIME at its arrival.
    pub(crate) seconds: u32,
    pub(crate) nanoseconds: u32,
    /// Its length on the wire; `bytes` is shorter where the ring's slots are too small.
    pub(crate) length_bytes: usize,
    pub(crate) bytes: &'a [u8],
}

/// The socket and its ring.
#[derive(Debug)]
pub(crate) struct Port {
    socket: OwnedFd,
    ring: NonNull<u8>,
    ring_bytes: usize,
    slot_bytes: usize,
    slots_per_block: u32,
    next_slot: u32,
}

// SAFETY: the mapping belongs to this value alone; nothing in it is tied to the thread that made it.
unsafe impl Send for Port {}

impl Port {
    /// Opens both sides' sockets in the calling thread's network namespace, unbound.
    ///
    /// Creating a ring waits for an RCU grace period (synchronize_net), about 13 ms. The two rings wait
    /// concurrently.
    pub(crate) fn open_pair(mtu_bytes: u32, frames: u32) -> io::Result<[Port; 2]> {
        let sockets = [packet_socket()?, packet_socket()?];
        std::thread::scope(|scope| {
            let rings = sockets.map(|socket| scope.spawn(move || Port::with_ring(socket, mtu_bytes, frames)));
            let [first, second] =
                rings.map(|ring| ring.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())));
            Ok([first?, second?])
        })
    }

    fn with_ring(socket: OwnedFd, mtu_bytes: u32, frames: u32) -> io::Result<Port> {
        set_option(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
        set_option(&socket, libc::PACKET_QDISC_BYPASS, &1_i32)?;
        // Since Linux 4.20. Older kernels show sent frames to other sockets only, and there are none.
        let _: io::Result<()> = set_option(&socket, libc::PACKET_IGNORE_OUTGOING, &1_i32);
        let slot_bytes = slot_bytes(mtu_bytes as usize);
        let slots_per_block = BLOCK_BYTES / slot_bytes;
        let blocks = frames.div_ceil(slots_per_block);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES,
            tp_block_nr: blocks,
            tp_frame_size: slot_bytes,
            tp_frame_nr: blocks * slots_per_block,
        };
        set_option(&socket, libc::PACKET_RX_RING, &request)?;
        let ring_bytes = request.tp_block_size as usize * request.tp_block_nr as usize;
        let ring = map(&socket, ring_bytes)?;
        Ok(Port { socket, ring, ring_bytes, slot_bytes: slot_bytes as usize, slots_per_block, next_slot: 0 })
    }

    /// Starts to receive the frames of this interface.
    pub(crate) fn bind(&self, interface_index: u32) -> io::Result<()> {
        // SAFETY: all zeros is a valid `sockaddr_ll`, which holds integers and bytes.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface_index.cast_signed();
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address outlives the call and has the length given.
        let result = unsafe { libc::bind(self.socket.as_raw_fd(), (&raw const address).cast(), length) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn slots(&self) -> u32 {
        (self.ring_bytes / BLOCK_BYTES as usize) as u32 * self.slots_per_block
    }

    fn slot(&self) -> NonNull<u8> {
        let (block, slot) = (self.next_slot / self.slots_per_block, self.next_slot % self.slots_per_block);
        let offset = block as usize * BLOCK_BYTES as usize + slot as usize * self.slot_bytes;
        // SAFETY: `next_slot` is below the number of slots, so the offset lies inside the mapping.
        unsafe { self.ring.add(offset) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: a slot begins with `tp_status`, an aligned u32 that the kernel changes concurrently; the
        // mapping outlives the borrow of `self`.
        unsafe { AtomicU32::from_ptr(self.slot().as_ptr().cast()) }
    }

    /// Whether a frame waits.
    pub(crate) fn is_readable(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Shows the next frame to `take`, then gives its slot back; false where there is none.
    pub(crate) fn receive(&mut self, take: impl FnOnce(Received<'_>)) -> bool {
        if !self.is_readable() {
            return false;
        }
        let slot = self.slot().as_ptr();
        // SAFETY: the kernel has handed the slot over (TP_STATUS_USER, read with acquire), so its header is
        // initialised and stays unchanged until the status is written below.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
        let start = usize::from(header.tp_mac).min(self.slot_bytes);
        let length = (header.tp_snaplen as usize).min(self.slot_bytes - start);
        // SAFETY: within the slot by the two lines above; nothing writes to it meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts(slot.add(start), length) };
        take(Received {
            seconds: header.tp_sec,
            nanoseconds: header.tp_nsec,
            length_bytes: header.tp_len as usize,
            bytes,
        });
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next_slot = (self.next_slot + 1) % self.slots();
        true
    }

    /// Sends up to [`BATCH`] frames; returns how many the kernel took.
    pub(crate) fn send<'a>(&self, frames: impl ExactSizeIterator<Item = &'a [u8]>) -> usize {
        // SAFETY: all zeros is valid for both: integers and null pointers.
        let (mut vectors, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut count = 0;
        for ((frame, vector), header) in frames.zip(&mut vectors).zip(&mut headers) {
            vector.iov_base = frame.as_ptr().cast_mut().cast();
            vector.iov_len = frame.len();
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        let mut sent = 0;
        while sent < count {
            let (fd, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
            // SAFETY: the headers, vectors and frames outlive the call; the kernel only reads the frames.
            let result = unsafe { libc::sendmmsg(fd, &raw mut headers[sent], (count - sent) as u32, flags) };
            match usize::try_from(result) {
                Ok(taken) if taken > 0 => sent += taken,
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        sent
    }

    /// Clears a pending error. A link that ends is one (ENETDOWN), and poll(2) would return at once until the
    /// emulator is stopped: in a large lab that ends, hundreds would take every CPU.
    pub(crate) fn clear_error(&self) {
        // The link carries no more frames, which needs no report.
        let _: Result<_, _> = rustix::net::sockopt::socket_error(&self.socket);
    }

    /// How many frames were dropped at a full ring since the last call.
    pub(crate) fn take_ring_losses(&self) -> u64 {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the buffer has the length given and outlives the call.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        if result < 0 { 0 } else { u64::from(statistics.tp_drops) }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` and nothing borrows from it any more.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), self.ring_bytes) };
    }
}

/// A packet socket without a protocol, so that it receives no frame before it is bound.
fn packet_socket() -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the descriptor that it returns has no other owner.
    unsafe {
        let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// How many frames the ring of a network holds, in a lab with this many emulated links. An unlimited rate
/// counts as the highest.
pub(crate) fn ring_frames(network: &Network, links: usize) -> u32 {
    let changes = network.timeline.iter().flat_map(|change| [&change.up, &change.down]);
    let directions = [&network.up, &network.down].into_iter().chain(changes);
    let rate = directions.map(|direction| direction.rate.mean_bits_per_s().unwrap_or(u64::MAX)).max();
    let wanted = rate.unwrap_or(0) / 8 / FULL_FRAME_BYTES / PERIODS_PER_S;
    let share = FRAMES_OF_A_LAB / 2 / (links.max(1) as u64);
    wanted.min(share).clamp(LEAST_FRAMES, MOST_FRAMES) as u32
}

/// The ring's header, the Ethernet header and the packet, aligned as the kernel demands (TPACKET_ALIGNMENT).
fn slot_bytes(mtu_bytes: usize) -> u32 {
    // The kernel reserves 16 bytes for the link-layer header.
    let needed = libc::TPACKET2_HDRLEN + 16 + ETHERNET_HEADER_BYTES + mtu_bytes;
    (needed.next_multiple_of(16) as u32).min(BLOCK_BYTES)
}

fn map(socket: &OwnedFd, bytes: usize) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of this program.
    let address = unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        libc::mmap(std::ptr::null_mut(), bytes, protection, flags, socket.as_raw_fd(), 0)
    };
    let Some(ring) = NonNull::new(address.cast()).filter(|_| address != libc::MAP_FAILED) else {
        return Err(io::Error::last_os_error());
    };
    // SAFETY: the mapping was just made. Children do not use it, and in a lab of a thousand links fork(2)
    // would copy the page tables of gigabytes for each node.
    unsafe { libc::madvise(address, bytes, libc::MADV_DONTFORK) };
    Ok(ring)
}

fn set_option<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: the value outlives the call and has the length given.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, value, length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use model::network::{Direction, LinkRate};

    use super::*;

    fn network(bits_per_s: Option<u64>) -> Network {
        let rate = bits_per_s.map_or(LinkRate::Unlimited, |bits_per_s| LinkRate::Constant { bits_per_s });
        let direction = Direction { rate, ..Direction::default() };
        Network { up: direction.clone(), down: direction, ..Network::default() }
    }

    #[test]
    fn a_link_takes_two_megabytes_unless_it_is_fast() {
        let bytes = |frames: u32| 2 * frames.div_ceil(BLOCK_BYTES / slot_bytes(1500)) * BLOCK_BYTES;
        for rate in [1_000_000, 50_000_000, 100_000_000] {
            let frames = ring_frames(&network(Some(rate)), 1);
            assert!(bytes(frames) <= 2 << 20, "{rate} bit/s: {frames} frames, {} bytes", bytes(frames));
            assert!(
                u64::from(frames) * FULL_FRAME_BYTES * 8 * PERIODS_PER_S >= rate,
                "{rate} bit/s: {frames}"
            );
        }
        assert_eq!(ring_frames(&network(Some(1_000_000_000)), 1), 4096);
        assert_eq!(ring_frames(&network(None), 1), 4096);
        assert_eq!(ring_frames(&network(None), 1000), 640, "a thousand links share what a lab may take");
    }
}
