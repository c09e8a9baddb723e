//! Links, addresses, neighbours and routes of the calling thread's network namespace, over rtnetlink (RFC
//! 3549).

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

use crate::netlink_bytes::{PORTION_BYTES, each_message};

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

/// A route's congestion control algorithm by name (linux/rtnetlink.h). Unlike the namespace's default, it can
/// be any algorithm that the kernel has loaded.
const RTAX_CC_ALGO: u16 = 16;

/// A qdisc's raw options, for kinds whose options begin with a structure (linux/rtnetlink.h).
const TCA_OPTIONS: u16 = 2;

/// Room for one answer, which has a few hundred bytes.
const ANSWER_BYTES: usize = 8192;

/// An rtnetlink socket in the network namespace of the thread that opened it.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
    answer: Vec<u8>,
}

/// A veth pair with one end in another namespace.
pub(crate) struct Veth<'a> {
    pub(crate) name: &'a str,
    /// The kernel chooses one where `None`.
    pub(crate) mac: Option<Mac>,
    pub(crate) peer_name: &'a str,
    pub(crate) peer_mac: Mac,
    pub(crate) peer_network: BorrowedFd<'a>,
    pub(crate) mtu_bytes: u32,
}

/// A route to a subnet that is directly attached or behind a router.
pub(crate) struct Route<'a> {
    pub(crate) index: u32,
    pub(crate) network: IpAddr,
    pub(crate) prefix: u8,
    /// The router; `None` where the subnet is directly attached.
    pub(crate) via: Option<IpAddr>,
    pub(crate) source: IpAddr,
    /// The kernel's default, which programs can change, where `None`.
    pub(crate) congestion_control: Option<&'a str>,
    pub(crate) initial_window_packets: Option<u32>,
}

/// A queueing discipline to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Qdisc {
    /// The kernel's name for its kind.
    pub(crate) kind: &'static str,
    /// Its handle.
    pub(crate) handle: u32,
    /// The class above it.
    pub(crate) parent: u32,
    /// TCA_OPTIONS.
    pub(crate) options: Vec<u8>,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // An answer that repeats a request of 32 KiB would be cut off, together with the reason.
        socket.set_cap_ack(true)?;
        Ok(Netlink { socket, sequence: 0, answer: Vec::with_capacity(ANSWER_BYTES) })
    }

    pub(crate) fn create_veth(&mut self, veth: &Veth<'_>) -> io::Result<()> {
        let peer = link_message(
            0,
            vec![
                LinkAttribute::IfName(veth.peer_name.to_owned()),
                LinkAttribute::Mtu(veth.mtu_bytes),
                LinkAttribute::Address(veth.peer_mac.to_vec()),
                LinkAttribute::NetNsFd(veth.peer_network.as_raw_fd()),
            ],
        );
        let data = InfoData::Veth(InfoVeth::Peer(peer));
        let mut link = new_link(veth.name, veth.mtu_bytes, InfoKind::Veth, data);
        link.attributes.extend(veth.mac.map(|mac| LinkAttribute::Address(mac.to_vec())));
        self.request(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Creates a bridge without spanning tree and multicast snooping: all its ports forward from the start.
    pub(crate) fn create_bridge(&mut self, name: &str, mtu_bytes: u32) -> io::Result<()> {
        let data = InfoData::Bridge(vec![InfoBridge::MulticastSnooping(false)]);
        let link = new_link(name, mtu_bytes, InfoKind::Bridge, data);
        self.request(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Makes an interface a port of a bridge.
    pub(crate) fn put_under(&mut self, index: u32, bridge: u32) -> io::Result<()> {
        let link = link_message(index, vec![LinkAttribute::Controller(bridge)]);
        self.request(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Makes a bridge's port one end of a wire: it learns no addresses, forwards all unicast frames, and
    /// drops multicast and broadcast frames.
    pub(crate) fn make_wire_port(&mut self, index: u32) -> io::Result<()> {
        let port = InfoPortData::BridgePort(vec![
            InfoBridgePort::Learning(false),
            InfoBridgePort::UnicastFlood(true),
            InfoBridgePort::MulticastFlood(false),
            InfoBridgePort::BroadcastFlood(false),
        ]);
        let info = vec![LinkInfo::PortKind(InfoPortKind::Bridge), LinkInfo::PortData(port)];
        let link = link_message(index, vec![LinkAttribute::LinkInfo(info)]);
        self.request(RouteNetlinkMessage::NewLink(link), 0)
    }

    /// Adds a qdisc to an interface.
    pub(crate) fn add_qdisc(&mut self, index: u32, qdisc: &Qdisc) -> io::Result<()> {
        let mut message = qdisc_message(index, TcHandle::from(qdisc.parent));
        message.header.handle = TcHandle::from(qdisc.handle);
        message.attributes = vec![
            TcAttribute::Kind(qdisc.kind.to_owned()),
            TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, qdisc.options.clone())),
        ];
        self.request(RouteNetlinkMessage::NewQueueDiscipline(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Removes an interface's root qdisc with its children and their queued packets.
    pub(crate) fn delete_root_qdisc(&mut self, index: u32) -> io::Result<()> {
        let message = qdisc_message(index, TcHandle::ROOT);
        self.request(RouteNetlinkMessage::DelQueueDiscipline(message), 0)
    }

    /// Passes the type and payload of a message for every qdisc of the namespace to `handle`, in the order of
    /// interfaces.
    pub(crate) fn each_qdisc(&mut self, mut handle: impl FnMut(u16, &[u8])) -> io::Result<()> {
        let message = TcMessage::default();
        self.send(RouteNetlinkMessage::GetQueueDiscipline(message), NLM_F_REQUEST | NLM_F_DUMP)?;
        let mut portion = Vec::with_capacity(PORTION_BYTES);
        loop {
            portion.clear();
            self.socket.recv(&mut portion, 0)?;
            if each_message(&portion, &mut handle)? {
                return Ok(());
            }
        }
    }

    pub(crate) fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut link = link_message(index, Vec::new());
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Adds an address without the route that the kernel adds by default.
    pub(crate) fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let message = address_message(index, address, prefix);
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    pub(crate) fn remove_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        self.request(RouteNetlinkMessage::DelAddress(address_message(index, address, prefix)), 0)
    }

    /// Adds a permanent neighbour, so that the kernel never resolves it.
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

    /// Adds an address that is reached through this bridge port, so that the bridge need not learn it.
    pub(crate) fn add_beyond(&mut self, index: u32, mac: Mac) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Bridge;
        message.header.ifindex = index;
        // A permanent entry would be an address of the bridge itself.
        message.header.state = NeighbourState::Noarp;
        message.header.flags = NeighbourFlags::Controller;
        message.attributes = vec![NeighbourAttribute::LinkLayerAddress(mac.to_vec())];
        self.request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Sets a route with TCP's congestion control and initial window; it replaces a route to the same subnet.
    pub(crate) fn set_route(&mut self, route: &Route<'_>) -> io::Result<()> {
        let Route { index, network, prefix, via, source, congestion_control, initial_window_packets } =
            *route;
        let mut message = RouteMessage::default();
        message.header.address_family = family(network);
        message.header.destination_prefix_length = prefix;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        let is_attached = network.is_ipv4() && via.is_none();
        message.header.scope = if is_attached { RouteScope::Link } else { RouteScope::Universe };
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Destination(network.into()),
            RouteAttribute::PrefSource(source.into()),
            RouteAttribute::Oif(index),
        ];
        let window = initial_window_packets.map(RouteMetric::InitCwnd);
        let algorithm = congestion_control.map(|name| {
            let text = [name.as_bytes(), &[0]].concat();
            RouteMetric::Other(DefaultNla::new(RTAX_CC_ALGO, text))
        });
        let metrics: Vec<RouteMetric> = window.into_iter().chain(algorithm).collect();
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        message.attributes.extend(via.map(|router| RouteAttribute::Gateway(router.into())));
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Whether frames pass an interface: its operational state and, for a bridge port, the port's state. Both
    /// change some time after the second of the two ends is up.
    pub(crate) fn is_passing(&mut self, index: u32) -> io::Result<bool> {
        let link = link_message(index, Vec::new());
        let answer = match self.ask(RouteNetlinkMessage::GetLink(link), 0)? {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => link,
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            other => return Err(unexpected(&other, "a link")),
        };
        let is_up = answer.attributes.iter().any(|a| matches!(a, LinkAttribute::OperState(State::Up)));
        let infos = answer.attributes.iter().filter_map(|attribute| match attribute {
            LinkAttribute::LinkInfo(infos) => Some(infos),
            _ => None,
        });
        let ports = infos.flatten().filter_map(|info| match info {
            LinkInfo::PortData(InfoPortData::BridgePort(port)) => Some(port),
            _ => None,
        });
        let is_closed_port = ports.flatten().any(
            |port| matches!(port, InfoBridgePort::State(state) if *state != BridgePortState::Forwarding),
        );
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

fn link_message(index: u32, attributes: Vec<LinkAttribute>) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.attributes = attributes;
    message
}

fn new_link(name: &str, mtu_bytes: u32, kind: InfoKind, data: InfoData) -> LinkMessage {
    let info = LinkAttribute::LinkInfo(vec![LinkInfo::Kind(kind), LinkInfo::Data(data)]);
    link_message(0, vec![LinkAttribute::IfName(name.to_owned()), LinkAttribute::Mtu(mtu_bytes), info])
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
    let problem = format!("the kernel's answer {answer:?} is not {expected}");
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
