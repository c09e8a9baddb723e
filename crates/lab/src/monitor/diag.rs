//! TCP sockets by state, from the kernel's socket table (sock_diag(7)).
//!
//! The dump leaves out ESTABLISHED and TIME-WAIT, which have most sockets under load: the kernel counts them,
//! and copying 50 000 sockets would cost more than all other sources together.

use std::io;

use model::monitor::Quantity;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};

use crate::netlink_bytes::{MESSAGE_HEADER_BYTES, PORTION_BYTES, each_message, u32_at};

/// linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h.
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_BYTES: usize = 56;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// The timer value of a timewait socket, the small socket that replaces a closed connection.
const SMALL_TIMER: u8 = 3;

const ESTABLISHED: usize = 1;
const FIN_WAIT_2: usize = 5;
const TIME_WAIT: usize = 6;
const CLOSE_WAIT: usize = 8;
const LISTEN: usize = 10;
/// The quantities of the states by the kernel's numbers (linux/tcp_states.h); `None` for states that are not
/// dumped.
const NAMES: [Option<Quantity>; 12] = [
    None,
    None,
    Some(Quantity::SynSent),
    Some(Quantity::SynReceived),
    Some(Quantity::FinWait1),
    Some(Quantity::FinWait2),
    None,
    Some(Quantity::Close),
    Some(Quantity::CloseWait),
    Some(Quantity::LastAck),
    Some(Quantity::Listen),
    Some(Quantity::Closing),
];
const WANTED: u32 = 0xffe & !(1 << ESTABLISHED) & !(1 << TIME_WAIT);

/// A sock_diag socket in the network namespace of the thread that opened it.
pub(super) struct Diag {
    socket: Socket,
    portion: Vec<u8>,
}

/// How many sockets are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct States {
    by_state: [u64; NAMES.len()],
    /// The sockets in FIN-WAIT-2 that the kernel counts as TIME-WAIT.
    pub(super) small_fin_wait_2: u64,
    /// Connections in accept queues.
    accept_queue: u64,
}

impl std::fmt::Debug for Diag {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Diag").finish_non_exhaustive()
    }
}

impl Diag {
    pub(super) fn open() -> io::Result<Diag> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Diag { socket, portion: Vec::with_capacity(PORTION_BYTES) })
    }

    /// Counts the sockets of IPv4 and, with `has_v6`, of IPv6.
    pub(super) fn dump(&mut self, has_v6: bool) -> io::Result<States> {
        let mut states = States::default();
        for family in std::iter::once(AF_INET).chain(has_v6.then_some(AF_INET6)) {
            self.socket.send(&request(family), 0)?;
            loop {
                self.portion.clear();
                self.socket.recv(&mut self.portion, 0)?;
                if states.add(&self.portion)? {
                    break;
                }
            }
        }
        Ok(states)
    }
}

impl States {
    pub(super) const fn close_wait(&self) -> u64 {
        self.by_state[CLOSE_WAIT]
    }

    /// The counts of the dump.
    pub(super) fn readings(&self) -> impl Iterator<Item = (Quantity, u64)> {
        let named = NAMES.iter().zip(self.by_state).filter_map(|(name, count)| Some(((*name)?, count)));
        named.chain([(Quantity::AcceptQueue, self.accept_queue)])
    }

    /// Adds a portion of the kernel's list; returns whether it was the last.
    fn add(&mut self, portion: &[u8]) -> io::Result<bool> {
        each_message(portion, |kind, message| {
            if kind == SOCK_DIAG_BY_FAMILY {
                self.count(message);
            }
        })
    }

    /// Adds a socket: `struct inet_diag_msg`.
    fn count(&mut self, message: &[u8]) {
        let [_, state, timer, ..] = *message else { return };
        let state = usize::from(state);
        let Some(count) = self.by_state.get_mut(state) else { return };
        *count += 1;
        self.small_fin_wait_2 += u64::from(state == FIN_WAIT_2 && timer == SMALL_TIMER);
        if state == LISTEN {
            // A listener's receive queue is its accept queue.
            self.accept_queue += u64::from(u32_at(message, 56).unwrap_or(0));
        }
    }
}

/// A request (`struct inet_diag_req_v2`) for every socket of a family in one of the wanted states.
fn request(family: u8) -> [u8; MESSAGE_HEADER_BYTES + REQUEST_BYTES] {
    let mut bytes = [0; MESSAGE_HEADER_BYTES + REQUEST_BYTES];
    #[expect(clippy::cast_possible_truncation, reason = "72")]
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes[16] = family;
    bytes[17] = IPPROTO_TCP;
    bytes[20..24].copy_from_slice(&WANTED.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink_bytes::{NLMSG_DONE, NLMSG_ERROR};

    /// A message as the kernel sends it, with an attribute behind the structure.
    fn message(kind: u16, state: u8, timer: u8, receive_queue: u32) -> Vec<u8> {
        let mut body = vec![0; 72];
        body[..3].copy_from_slice(&[AF_INET, state, timer]);
        body[56..60].copy_from_slice(&receive_queue.to_ne_bytes());
        body.extend([5, 0, 8, 0, 0, 0, 0, 0]);
        let length = u32::try_from(MESSAGE_HEADER_BYTES + body.len()).unwrap();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([2, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn sockets_are_counted_by_state() {
        let mut portion = Vec::new();
        for (state, timer, queue) in
            [(10, 0, 3), (10, 0, 4), (5, 0, 0), (5, SMALL_TIMER, 0), (8, 0, 99), (200, 0, 0)]
        {
            portion.extend(message(SOCK_DIAG_BY_FAMILY, state, timer, queue));
        }
        let mut states = States::default();
        assert!(!states.add(&portion).unwrap());
        assert!(states.add(&message(NLMSG_DONE, 0, 0, 0)).unwrap());
        let found = |wanted: Quantity| states.readings().find(|(quantity, _)| *quantity == wanted).unwrap().1;
        assert_eq!(found(Quantity::Listen), 2);
        assert_eq!(found(Quantity::AcceptQueue), 7);
        assert_eq!(found(Quantity::FinWait2), 2);
        assert_eq!((states.small_fin_wait_2, states.close_wait()), (1, 1));
        assert_eq!(states.readings().count(), 10);
    }

    #[test]
    fn a_refusal_and_a_torn_list_are_errors() {
        let mut refusal = message(NLMSG_ERROR, 0, 0, 0);
        refusal[16..20].copy_from_slice(&(-2_i32).to_ne_bytes());
        let error = States::default().add(&refusal).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let whole = message(SOCK_DIAG_BY_FAMILY, 10, 0, 0);
        for end in 1..whole.len() {
            assert!(States::default().add(&whole[..end]).is_err(), "cut at {end}");
        }
        for length in [0_u32, 15, u32::MAX] {
            let mut wrong = whole.clone();
            wrong[..4].copy_from_slice(&length.to_ne_bytes());
            assert!(States::default().add(&wrong).is_err(), "length {length}");
        }
    }
}
