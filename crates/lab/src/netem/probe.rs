//! Whether this kernel has netem.

use std::io;

use super::{options, tree};
use crate::error::LabError;
use crate::link;
use crate::netlink::{Netlink, Qdisc};
use crate::netns;
use crate::worker::Worker;

const REMEDY: &str = "load the kernel's module (`modprobe sch_KIND` as root; on Ubuntu it is in \
                      linux-modules-extra-$(uname -r)), or use the backend `user-space`";

/// Finds out whether this kernel has netem, by adding it to the loopback of a temporary namespace. It
/// requires the capabilities to build a lab; call it after [`crate::enter`].
///
/// # Errors
/// [`LabError::Unsupported`] where the kernel has no netem; others where no namespace can be created.
pub fn probe_netem() -> Result<(), LabError> {
    probe("netem", options::serialiser(None, 1))
}

/// Finds out whether this kernel has a kind of qdisc.
pub(super) fn probe(kind: &'static str, options: Vec<u8>) -> Result<(), LabError> {
    crate::capability::require()?;
    let step = move || format!("probing for the queueing discipline `{kind}`");
    Worker::new("probe")?.run(move || {
        let _namespace = netns::unshare_network()?;
        let add = || -> io::Result<()> {
            let index = link::interface_index("lo")?;
            let qdisc = Qdisc { kind, handle: tree::SERIALISER, parent: tree::ROOT, options };
            Netlink::open()?.add_qdisc(index, &qdisc)
        };
        match add() {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Err(missing(kind)),
            Err(source) => Err(LabError::System { step: step(), source }),
            Ok(()) => Ok(()),
        }
    })
}

/// The error of a kernel without a kind of qdisc.
pub(super) fn missing(kind: &str) -> LabError {
    LabError::Unsupported {
        what: format!("the queueing discipline `{kind}`"),
        remedy: REMEDY.replace("KIND", kind),
    }
}
