//! What this machine and this user may do, and what to do about what is missing.

use std::io;
use std::path::Path;

use crate::netns::{self, NOT_TRIED, Trial};

/// Capabilities that building a lab takes (capabilities(7)): CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN.
const NEEDED_CAPABILITIES: u64 = 1 << 12 | 1 << 13 | 1 << 21;

/// What a lab needs, and for each part that is missing why and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Network, mount and PID namespaces: without them nothing is emulated.
    pub namespaces: Result<Access, Missing>,
    /// Packet sockets (AF_PACKET) inside them: without them nothing is emulated.
    pub packet_sockets: Result<(), Missing>,
    /// Real-time priority for the emulator (SCHED_FIFO): without it frames may be late on a busy machine.
    pub realtime: Result<(), Missing>,
}

/// How namespaces can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// This process may make them as it is.
    Direct,
    /// After moving into a user namespace of its own.
    UserNamespace,
}

/// Something that is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}; {remedy}")]
pub struct Missing {
    /// What cannot be had.
    pub what: &'static str,
    /// Why, in one clause.
    pub why: String,
    /// What to do about it, in one clause.
    pub remedy: String,
}

impl Capability {
    /// Whether networks can be emulated.
    ///
    /// # Errors
    /// The first thing that is missing.
    pub fn emulation(&self) -> Result<Access, Missing> {
        self.packet_sockets.clone()?;
        self.namespaces.clone()
    }
}

/// Finds out what this process may do, without changing it: a child process tries.
pub fn probe() -> Capability {
    let access = if has_capabilities() { Access::Direct } else { Access::UserNamespace };
    match netns::try_out(access == Access::UserNamespace) {
        Ok(trial) => judge(access, trial, &|file| std::fs::read_to_string(file).ok()),
        Err(error) => {
            let missing = Missing {
                what: "namespaces",
                why: format!("no process could be started to try them ({error})"),
                remedy: "raise the limit on processes (`ulimit -u`) or free memory".to_owned(),
            };
            Capability {
                namespaces: Err(missing.clone()),
                packet_sockets: Err(missing.clone()),
                realtime: Err(missing),
            }
        }
    }
}

/// Makes labs possible for this process: call it once, at the start, while there is one thread.
///
/// With the capabilities of root it changes nothing (real-time priority would be refused inside a user namespace);
/// otherwise the process moves into a user namespace in which it is root.
///
/// # Errors
/// User namespaces are not permitted here, or the process has more than one thread.
pub fn enter() -> Result<Access, Missing> {
    if has_capabilities() {
        return Ok(Access::Direct);
    }
    match netns::unshare_user() {
        Ok(()) => Ok(Access::UserNamespace),
        Err(error) => Err(user_namespace_missing(error.raw_os_error().unwrap_or(0), &|file| {
            std::fs::read_to_string(file).ok()
        })),
    }
}

/// Fails where a lab cannot be built because the capabilities are not there.
pub(crate) fn require() -> Result<(), Missing> {
    if has_capabilities() {
        return Ok(());
    }
    Err(Missing {
        what: "namespaces",
        why: "this process has no right to make them".to_owned(),
        remedy:
            "run as root, or permit unprivileged user namespaces (`h123 doctor` says what stands in the way)"
                .to_owned(),
    })
}

/// Whether the effective capabilities suffice (`CapEff` of /proc/self/status).
fn has_capabilities() -> bool {
    let effective = std::fs::read_to_string("/proc/thread-self/status").ok().and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(line.trim(), 16).ok()
    });
    effective.is_some_and(|effective| effective & NEEDED_CAPABILITIES == NEEDED_CAPABILITIES)
}

type ReadFile<'a> = &'a dyn Fn(&Path) -> Option<String>;

fn judge(access: Access, trial: Trial, read: ReadFile<'_>) -> Capability {
    let namespaces = match (trial.user_namespace, trial.other_namespaces) {
        (0, 0) => Ok(access),
        (0, errno) => Err(other_namespaces_missing(access, errno, read)),
        (errno, _) => Err(user_namespace_missing(errno, read)),
    };
    let packet_sockets = match (&namespaces, trial.packet_socket) {
        (_, 0) => Ok(()),
        (Err(missing), NOT_TRIED) => Err(missing.clone()),
        (_, errno) => Err(Missing {
            what: "packet sockets",
            why: format!("the kernel refuses AF_PACKET inside a namespace ({})", reason(errno)),
            remedy: "use a kernel with CONFIG_PACKET, or loosen the container's seccomp profile".to_owned(),
        }),
    };
    let realtime = match (trial.realtime, access) {
        (0, _) => Ok(()),
        (errno, Access::UserNamespace) => Err(Missing {
            what: "real-time priority",
            why: format!("SCHED_FIFO is refused to an ordinary user ({})", reason(errno)),
            remedy: "run as root, or keep the machine idle while measuring".to_owned(),
        }),
        (errno, Access::Direct) => Err(Missing {
            what: "real-time priority",
            why: format!("SCHED_FIFO is refused to this root ({})", reason(errno)),
            remedy:
                "leave the user namespace or give the container CAP_SYS_NICE, or keep the machine idle while \
                     measuring"
                    .to_owned(),
        }),
    };
    Capability { namespaces, packet_sockets, realtime }
}

fn user_namespace_missing(errno: i32, read: ReadFile<'_>) -> Missing {
    let setting = |file: &str| read(Path::new("/proc/sys").join(file).as_path());
    let is = |file: &str, value: &str| setting(file).is_some_and(|found| found.trim() == value);
    let (why, remedy) = if is("user/max_user_namespaces", "0") {
        (
            "the limit on user namespaces is 0",
            "`sysctl -w user.max_user_namespaces=10000` as root permits them",
        )
    } else if is("kernel/unprivileged_userns_clone", "0") {
        (
            "this kernel reserves user namespaces for root",
            "`sysctl -w kernel.unprivileged_userns_clone=1` as root permits them",
        )
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        (
            "AppArmor restricts user namespaces of ordinary users",
            "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` as root permits them",
        )
    } else if errno == libc::EINVAL {
        (
            "the process has several threads, or this kernel has no user namespaces",
            "move before the first thread starts, or use a kernel with CONFIG_USER_NS",
        )
    } else if errno == libc::ENOSPC {
        (
            "user namespaces are nested too deep or too many",
            "leave the outer namespace, or raise user.max_user_namespaces",
        )
    } else {
        (
            "user namespaces are refused, perhaps by a container's seccomp profile",
            "run as root on the machine itself, or start the container with `--privileged`",
        )
    };
    Missing { what: "namespaces", why: format!("{why} ({})", reason(errno)), remedy: remedy.to_owned() }
}

fn other_namespaces_missing(access: Access, errno: i32, read: ReadFile<'_>) -> Missing {
    // AppArmor lets the user namespace be made and then takes its capabilities away.
    if access == Access::UserNamespace && errno == libc::EPERM {
        return user_namespace_missing(errno, read);
    }
    Missing {
        what: "namespaces",
        why: format!("the kernel refuses network, mount or PID namespaces ({})", reason(errno)),
        remedy: "use a kernel with CONFIG_NET_NS and CONFIG_PID_NS, or raise user.max_net_namespaces"
            .to_owned(),
    }
}

fn reason(errno: i32) -> String {
    io::Error::from_raw_os_error(errno).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Trial = Trial { user_namespace: 0, other_namespaces: 0, packet_socket: 0, realtime: 0 };
    const NOTHING: Trial = Trial {
        user_namespace: libc::EPERM,
        other_namespaces: NOT_TRIED,
        packet_socket: NOT_TRIED,
        realtime: libc::EPERM,
    };

    #[test]
    fn all_is_well() {
        let found = judge(Access::Direct, ALL, &|_| None);
        assert_eq!(found.emulation(), Ok(Access::Direct));
        assert_eq!(found.realtime, Ok(()));
    }

    #[test]
    fn each_obstacle_has_its_remedy() {
        for (file, value, remedy) in [
            ("user/max_user_namespaces", "0\n", "user.max_user_namespaces=10000"),
            ("kernel/unprivileged_userns_clone", "0\n", "kernel.unprivileged_userns_clone=1"),
            (
                "kernel/apparmor_restrict_unprivileged_userns",
                "1\n",
                "apparmor_restrict_unprivileged_userns=0",
            ),
        ] {
            let read = |asked: &Path| asked.ends_with(file).then(|| value.to_owned());
            let missing = judge(Access::UserNamespace, NOTHING, &read).emulation().unwrap_err();
            assert!(missing.remedy.contains(remedy), "{file}: {missing}");
        }
        let missing = judge(Access::UserNamespace, NOTHING, &|_| None).emulation().unwrap_err();
        assert!(missing.why.contains("seccomp"), "{missing}");
        let stripped = Trial { other_namespaces: libc::EPERM, user_namespace: 0, ..NOTHING };
        let read =
            |asked: &Path| asked.ends_with("apparmor_restrict_unprivileged_userns").then(|| "1".to_owned());
        let missing = judge(Access::UserNamespace, stripped, &read).emulation().unwrap_err();
        assert!(missing.why.contains("AppArmor"), "{missing}");
    }

    #[test]
    fn a_user_lacks_real_time_only() {
        let trial = Trial { realtime: libc::EPERM, ..ALL };
        let found = judge(Access::UserNamespace, trial, &|_| None);
        assert_eq!(found.emulation(), Ok(Access::UserNamespace));
        assert!(found.realtime.unwrap_err().remedy.contains("root"));
    }
}
