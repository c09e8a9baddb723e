//! Kernel settings inside a node's namespaces. The machine's settings stay unchanged.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::LazyLock;

use model::pins::CongestionControl;

use crate::error::{LabError, Step};
use crate::settings::LinkSettings;

const ROOT: &str = "/proc/sys/net";

/// Minimum, default and maximum of TCP's receive buffer: room for 1 Gbit/s over 30 ms (3.75 MB) and the
/// kernel's overhead.
const TCP_RECEIVE_BYTES: &str = "4096 131072 33554432";
/// Minimum, default and maximum of TCP's send buffer.
const TCP_SEND_BYTES: &str = "4096 65536 33554432";

const NODE: &[(&str, &str)] = &[
    ("ipv4/tcp_rmem", TCP_RECEIVE_BYTES),
    ("ipv4/tcp_wmem", TCP_SEND_BYTES),
    ("ipv4/tcp_no_metrics_save", "1"),
    ("ipv4/ip_unprivileged_port_start", "0"),
];

/// The settings of a router.
const ROUTER: &[(&str, &str)] = &[("ipv4/ip_forward", "1")];
const ROUTER_IPV6: &[(&str, &str)] =
    &[("ipv6/conf/all/forwarding", "1"), ("ipv6/conf/default/forwarding", "1")];

/// No router advertisements, no duplicate address detection, no link-local address: the link carries only
/// client traffic.
const NODE_IPV6: &[(&str, &str)] = &[
    ("ipv6/conf/default/disable_ipv6", "0"),
    ("ipv6/conf/default/accept_ra", "0"),
    ("ipv6/conf/default/autoconf", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/dad_transmits", "0"),
    ("ipv6/conf/default/addr_gen_mode", "1"),
    ("ipv6/conf/lo/disable_ipv6", "0"),
];

/// No addresses and no own traffic.
const SILENT_IPV6: &[(&str, &str)] =
    &[("ipv6/conf/default/disable_ipv6", "1"), ("ipv6/conf/all/disable_ipv6", "1")];

/// Whether this kernel has IPv6. It is asked once: a lookup below `/proc/sys/net` takes longer with each
/// namespace.
pub(crate) fn has_ipv6() -> bool {
    static HAS_IPV6: LazyLock<bool> = LazyLock::new(|| Path::new(ROOT).join("ipv6").exists());
    *HAS_IPV6
}

/// Applies the settings of a node, before its links exist.
pub(crate) fn apply_node(settings: LinkSettings) -> Result<(), LabError> {
    write_all(NODE)?;
    if has_ipv6() {
        write_all(NODE_IPV6)?;
    }
    permit_ping()?;
    // The kernel may reserve a non-default algorithm for the initial namespace. The route sets the algorithm
    // too, and the route takes precedence.
    if let Some(name) = settings.congestion_control.map(CongestionControl::name) {
        let _: std::io::Result<()> =
            std::fs::write(Path::new(ROOT).join("ipv4/tcp_congestion_control"), name);
    }
    Ok(())
}

/// Lets every user send ICMP echo requests, so that `ping` works without privileges.
fn permit_ping() -> Result<(), LabError> {
    // A user namespace of one user accepts its own group only.
    let name = "ipv4/ping_group_range";
    write_all(&[(name, "0 2147483647")]).or_else(|_| write_all(&[(name, "0 0")]))
}

/// The congestion control algorithms that this kernel has loaded.
pub(crate) fn available_congestion_control() -> String {
    let file = Path::new(ROOT).join("ipv4/tcp_available_congestion_control");
    std::fs::read_to_string(file).map_or_else(|_| "nothing".to_owned(), |text| text.trim().to_owned())
}

/// Applies the settings of a router, before its links exist and after [`apply_node`].
pub(crate) fn apply_router() -> Result<(), LabError> {
    write_all(ROUTER)?;
    if has_ipv6() { write_all(ROUTER_IPV6) } else { Ok(()) }
}

/// Applies the settings of a namespace that only forwards frames: of an emulator or a switch.
pub(crate) fn apply_silent() -> Result<(), LabError> {
    if has_ipv6() { write_all(SILENT_IPV6) } else { Ok(()) }
}

fn write_all(settings: &[(&str, &str)]) -> Result<(), LabError> {
    settings.iter().try_for_each(|(name, value)| {
        let result = std::fs::write(Path::new(ROOT).join(name), value);
        result.step(|| format!("setting net/{name} to `{value}` inside the lab")).or_else(
            |error| match &error {
                // An older kernel without the setting lacks the feature that it switches off.
                LabError::System { source, .. } if source.kind() == ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            },
        )
    })
}
