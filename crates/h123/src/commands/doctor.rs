//! `h123 doctor`: what this machine supports, what is missing, and how to get it.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use clap::Args;
use drive::Servers;
use lab::{Access, LabError, MissingCapability};
use model::buffers::{Buffer, UDP_BUFFER_BYTES};
use model::options::ConnectionOptions;
use model::units::format_bytes;

use crate::commands::servers::supported;
use crate::exit::Exit;
use crate::terminal::print;

/// Check what this machine supports, what is missing, and how to get it
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {}

/// Runs the command.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn run(_args: &DoctorArgs) -> Result<Exit> {
    let capability = lab::probe();
    let namespaces = capability.namespaces.as_ref().map(|access| match access {
        Access::Direct => "as this user".to_owned(),
        Access::UserNamespace => "in a user namespace".to_owned(),
    });
    line("kernel", capability.kernel.as_ref().map(|release| format!("Linux {release}")))?;
    line("namespaces", namespaces)?;
    line("packet sockets", capability.packet_sockets.as_ref().map(|()| "AF_PACKET".to_owned()))?;
    line("real-time priority", capability.realtime.as_ref().map(|()| "SCHED_FIFO".to_owned()))?;
    udp_buffers()?;
    match lab::several_users() {
        Ok(()) => line("several users", Ok("programs in a lab can change their user".to_owned()))?,
        // h123 itself does not need it, so its absence is not a fault.
        Err(missing) => print(&format!("- several users: {}; {}", missing.why, missing.remedy))?,
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    print(&format!(
        "{} CPUs: {cpus}{}",
        mark(cpus >= 2),
        if cpus >= 2 { "" } else { " (use 2 or more: client, server and emulator share them)" }
    ))?;
    let program = std::env::current_exe()?;
    for name in Servers::names() {
        let found =
            Servers::find(&name).map_err(anyhow::Error::from).and_then(|adapter| adapter.probe(&program));
        match found {
            Ok(found) => {
                let mut reasons = Vec::new();
                let variants = supported(found.variants, &format!("- server {name}: "), &mut reasons);
                let (version, program) = (found.version, found.program.display());
                print(&format!("{} server {name}: {version}, {variants} ({program})", mark(true)))?;
                reasons.iter().try_for_each(|reason| print(reason))?;
            }
            Err(error) => print(&format!("{} server {name}: {error:#}", mark(false)))?,
        }
    }
    if capability.emulation().is_ok() {
        netem()?;
    }
    let conclusion = match capability.emulation() {
        Ok(_) => "this machine can emulate networks; try `h123 run quick`".to_owned(),
        Err(missing) => {
            format!("this machine cannot emulate networks, so results would be invalid; {}", missing.remedy)
        }
    };
    print(&conclusion)?;
    Ok(if capability.emulation().is_ok() { Exit::Done } else { Exit::Invalid })
}

/// Whether QUIC sockets get the buffers that they request.
fn udp_buffers() -> Result<()> {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    match load::buffer_shortfalls(anywhere, true, &ConnectionOptions::default()) {
        Ok(found) if found.is_empty() => {
            let size = format_bytes(f64::from(UDP_BUFFER_BYTES));
            let settings = [Buffer::Receive, Buffer::Send].map(Buffer::setting).join(", ");
            line("UDP buffers", Ok(format!("{size} each ({settings})")))
        }
        Ok(found) => found.iter().try_for_each(|shortfall| {
            print(&format!("{} {}: {shortfall}", mark(false), shortfall.buffer.setting()))
        }),
        Err(error) => print(&format!("{} UDP buffers: no socket can be opened ({error})", mark(false))),
    }
}

/// Whether the kernel can be the backend. The check enters a namespace, so it comes last.
fn netem() -> Result<()> {
    match lab::enter().map_err(LabError::from).and_then(|_| lab::probe_netem()) {
        Ok(()) => line("netem", Ok("the kernel can emulate networks too".to_owned())),
        // Only studies that choose this backend need it, so its absence is not a fault.
        Err(LabError::Unsupported { what, remedy }) => {
            print(&format!("- netem: {what} {UNNEEDED}; {remedy}"))
        }
        Err(error) => print(&format!("- netem: {:#}; {UNNEEDED}", anyhow::Error::from(error))),
    }
}

const UNNEEDED: &str = "is needed only for studies with the backend `netem`";

fn line(what: &str, found: Result<String, &MissingCapability>) -> Result<()> {
    match found {
        Ok(how) => print(&format!("{} {what}: {how}", mark(true))),
        Err(missing) => print(&format!("{} {what}: {}; {}", mark(false), missing.why, missing.remedy)),
    }
}

const fn mark(good: bool) -> &'static str {
    if good { "✓" } else { "✗" }
}
