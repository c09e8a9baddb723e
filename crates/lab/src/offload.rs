//! Switches an interface's offloads off (SIOCETHTOOL), so that the emulator receives frames as on a wire.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType};

const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// ETHTOOL_SRXCSUM, STXCSUM, SSG, STSO, SGSO, SGRO (linux/ethtool.h). Without transmit checksums the kernel
/// also segments UDP batches (`tx-udp-segmentation` requires them).
const SWITCHES: [u32; 6] = [0x15, 0x17, 0x19, 0x1f, 0x24, 0x2c];

#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Switches every offload of the interface off. An offload that the driver lacks is off already.
pub(crate) fn switch_off(interface: &str) -> io::Result<()> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    for command in SWITCHES {
        let mut value = EthtoolValue { command, data: 0 };
        // SAFETY: all zeros is a valid `ifreq`: it holds bytes, integers and a pointer that is set below.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = from.cast_signed();
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the request names an interface and points to an `ethtool_value` that outlives the call.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if result < 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EOPNOTSUPP) {
                return Err(error);
            }
        }
    }
    Ok(())
}
