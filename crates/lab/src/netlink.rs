//! Links, addresses, neighbours and routes of the calling thread's network namespace, over rtnetlink (RFC 3549).

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope};
use netlink_packet_route::link::{
    BridgePortState, InfoBridge, InfoBridgePort, InfoData, InfoKind, InfoPortData, InfoPortKind, InfoVeth,
    LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::netem::{Counters, Qdisc};

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

/// A route's congestion control algorithm by name (linux/rtnetlink.h). Unlike the namespace's default it may be any
/// that the kernel has loaded.
const RTAX_CC_ALGO: u16 = 16;

/// An attribute's options as they are, for kinds of queueing disciplines whose options begin with a structure
/// (linux/rtnetlink.h).
const TCA_OPTIONS: u16 = 2;

/// One answer is a few hundred bytes.
const ANSWER_BYTES: usize = 8192;
/// A list comes in portions of up to 32 KiB (`NLMSG_GOODSIZE` and the socket's own growth).
const PORTION_BYTES: usize = 64 << 10;

/// A socket to the kernel's routing tables, in the namespace of the thread that opened it.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
    answer: Vec<u8>,
}

/// Two joined interfaces, one of them in another namespace.
pub(crate) struct Veth<'a> {
    pub(crate) name: &'a str,
    /// One of the kernel's choice where `None`.
    pub(crate) mac: Option<Mac>,
    pub(crate) peer_name: &'a str,
    pub(crate) peer_mac: Mac,
    pub(crate) peer_network: BorrowedFd<'a>,
    pub(crate) mtu_bytes: u32,
}

/// A route to a network that an interface is on, or that lies behind a router.
pub(crate) struct Route<'a> {
    pub(crate) index: u32,
    pub(crate) network: IpAddr,
    pub(crate) prefix: u8,
    /// The router; `None` where the network is the interface's own.
    pub(crate) via: Option<IpAddr>,
    pub(crate) source: IpAddr,
    pub(crate) congestion_control: &'a str,
    pub(crate) initial_window_packets: u32,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // An answer that repeated a table of 32 KiB would be cut off, and with it the reason.
        socket.set_cap_ack(true)?;
        Ok(Netlink { socket, sequence: 0, answer: Vec::with_capacity(ANSWER_BYTES) })
    }

    pub(crate) fn create_veth(&mut self, veth: &Veth<'_>) -> io::Result<()> {
        let mut peer = LinkMessage::default();
        peer.attributes = vec![
            LinkAttribute::IfName(veth.peer_name.to_owned()),
            LinkAttribute::Mtu(veth.mtu_bytes),
            LinkAttribute::Address(veth.peer_mac.to_vec()),
            LinkAttribute::NetNsFd(veth.peer_network.as_raw_fd()),
        ];
        let mut link = LinkMessage::default();
        link.attributes = vec![
            LinkAttribute::IfName(veth.name.to_owned()),
            LinkAttribute::Mtu(veth.mtu_bytes),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
            ]),
        ];
        link.attributes.extend(veth.mac.map(|mac| LinkAttribute::Address(mac.to_vec())));
        self.request(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// A bridge without spanning tree or multicast snooping: its ports forward from the start, and alike.
    pub(crate) fn create_bridge(&mut self, name: &str, mtu_bytes: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::Mtu(mtu_bytes),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Bridge),
                LinkInfo::Data(InfoData::Bridge(vec![InfoBridge::MulticastSnooping(false)])),
            ]),
        ];
        self.request(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Makes an interface a port of a bridge.
    pub(crate) fn put_under(&mut self, index: u32, bridge: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.attributes = vec![LinkAttribute::Controller(bridge)];
        self.request(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Makes a bridge's port one end of a wire: it learns nothing, hands everything on that is for one node, and nothing that
    /// is for several.
    pub(crate) fn make_wire_port(&mut self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.attributes = vec![LinkAttribute::LinkInfo(vec![
            LinkInfo::PortKind(InfoPortKind::Bridge),
            LinkInfo::PortData(InfoPortData::BridgePort(vec![
                InfoBridgePort::Learning(false),
                InfoBridgePort::UnicastFlood(true),
                InfoBridgePort::MulticastFlood(false),
                InfoBridgePort::BroadcastFlood(false),
            ])),
        ])];
        self.request(RouteNetlinkMessage::NewLink(link), 0)
    }

    /// Adds a queueing discipline to an interface.
    pub(crate) fn add_qdisc(&mut self, index: u32, qdisc: &Qdisc) -> io::Result<()> {
        let mut message = qdisc_message(index, TcHandle::from(qdisc.parent));
        message.header.handle = TcHandle::from(qdisc.handle);
        message.attributes = vec![
            TcAttribute::Kind(qdisc.kind.to_owned()),
            TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, qdisc.options.clone())),
        ];
        self.request(RouteNetlinkMessage::NewQueueDiscipline(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Removes an interface's root queueing discipline, with all below it and what waits there.
    pub(crate) fn delete_root_qdisc(&mut self, index: u32) -> io::Result<()> {
        let message = qdisc_message(index, TcHandle::ROOT);
        self.request(RouteNetlinkMessage::DelQueueDiscipline(message), 0)
    }

    /// The counters of every queueing discipline of the namespace, in the order of interfaces.
    pub(crate) fn qdiscs(&mut self) -> io::Result<Vec<Counters>> {
        let message = TcMessage::default();
        self.send(RouteNetlinkMessage::GetQueueDiscipline(message), NLM_F_REQUEST | NLM_F_DUMP)?;
        let mut found = Vec::new();
        let mut portion = Vec::with_capacity(PORTION_BYTES);
        loop {
            portion.clear();
            self.socket.recv(&mut portion, 0)?;
            if Counters::read_all(&portion, &mut found)? {
                return Ok(found);
            }
        }
    }

    pub(crate) fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Adds an address without the route that the kernel would add with it.
    pub(crate) fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let message = address_message(index, address, prefix);
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    pub(crate) fn remove_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        self.request(RouteNetlinkMessage::DelAddress(address_message(index, address, prefix)), 0)
    }

    /// A neighbour that is never asked for.
    pub(crate) fn add_neighbour(&mut self, index: u32, address: IpAddr, mac: Mac) -> io::Result<()> {
        let destination = match address {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        };
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            NeighbourAttribute::Destination(destination),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        self.request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Whose frames leave a bridge at this port, which the bridge need not learn then.
    pub(crate) fn add_beyond(&mut self, index: u32, mac: Mac) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Bridge;
        message.header.ifindex = index;
        // "Permanent" would be an address of the bridge itself.
        message.header.state = NeighbourState::Noarp;
        message.header.flags = NeighbourFlags::Controller;
        message.attributes = vec![NeighbourAttribute::LinkLayerAddress(mac.to_vec())];
        self.request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// A route with TCP's congestion control and initial window; it takes the place of one to the same network.
    pub(crate) fn set_route(&mut self, route: &Route<'_>) -> io::Result<()> {
        let Route { index, network, prefix, via, source, congestion_control, initial_window_packets } =
            *route;
        let mut algorithm = congestion_control.as_bytes().to_vec();
        algorithm.push(0);
        let mut message = RouteMessage::default();
        message.header.address_family = family(network);
        message.header.destination_prefix_length = prefix;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        let is_own = network.is_ipv4() && via.is_none();
        message.header.scope = if is_own { RouteScope::Link } else { RouteScope::Universe };
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Destination(network.into()),
            RouteAttribute::PrefSource(source.into()),
            RouteAttribute::Oif(index),
            RouteAttribute::Metrics(vec![
                RouteMetric::InitCwnd(initial_window_packets),
                RouteMetric::Other(DefaultNla::new(RTAX_CC_ALGO, algorithm)),
            ]),
        ];
        message.attributes.extend(via.map(|router| RouteAttribute::Gateway(router.into())));
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Whether frames pass an interface: its own state and, where it is a port of a bridge, the port's. Both follow some
    /// time after the last of the two ends was set up.
    pub(crate) fn is_passing(&mut self, index: u32) -> io::Result<bool> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        let answer = match self.ask(RouteNetlinkMessage::GetLink(link), 0)? {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => link,
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            other => return Err(unexpected(&other, "a link")),
        };
        let is_up = answer.attributes.iter().any(|a| matches!(a, LinkAttribute::OperState(State::Up)));
        let mut infos = answer.attributes.iter().filter_map(|attribute| match attribute {
            LinkAttribute::LinkInfo(infos) => Some(infos),
            _ => None,
        });
        let is_closed = |port: &InfoBridgePort| matches!(port, InfoBridgePort::State(state) if *state != BridgePortState::Forwarding);
        let is_closed_port = infos.any(|infos| {
            infos.iter().any(|info| match info {
                LinkInfo::PortData(InfoPortData::BridgePort(port)) => port.iter().any(is_closed),
                _ => false,
            })
        });
        Ok(is_up && !is_closed_port)
    }

    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        match self.ask(message, NLM_F_ACK | flags)? {
            NetlinkPayload::Error(error) if error.code.is_none() => Ok(()),
            NetlinkPayload::Error(error) => Err(error.to_io()),
            other => Err(unexpected(&other, "an acknowledgement")),
        }
    }

    fn ask(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<NetlinkPayload<RouteNetlinkMessage>> {
        self.send(message, NLM_F_REQUEST | flags)?;
        self.answer.clear();
        self.socket.recv(&mut self.answer, 0)?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&self.answer)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        Ok(answer.payload)
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut request = NetlinkMessage::from(message);
        request.header.flags = flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(|_| ())
    }
}

fn address_message(index: u32, address: IpAddr, prefix: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.prefix_len = prefix;
    message.header.scope = AddressScope::Universe;
    message.header.index = index;
    message.attributes = vec![
        AddressAttribute::Local(address),
        AddressAttribute::Address(address),
        AddressAttribute::Flags(AddressFlags::Noprefixroute | AddressFlags::Nodad | AddressFlags::Permanent),
    ];
    message
}

fn unexpected(answer: &NetlinkPayload<RouteNetlinkMessage>, expected: &str) -> io::Error {
    let problem = format!("the kernel answered {answer:?}, expected {expected}");
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

fn qdisc_message(index: u32, parent: TcHandle) -> TcMessage {
    let mut message = TcMessage::with_index(index.cast_signed());
    message.header.parent = parent;
    message
}

const fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
