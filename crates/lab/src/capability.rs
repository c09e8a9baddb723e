//! What this machine and this user may do, and what to do about what is missing.

use std::io;
use std::path::Path;

use crate::netns::{self, NOT_TRIED, Trial};

/// Capabilities that building a lab takes (capabilities(7)): CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN.
const NEEDED_CAPABILITIES: u64 = 1 << 12 | 1 << 13 | 1 << 21;

/// With `epoll_pwait2`, major and minor.
const LEAST_KERNEL: (u32, u32) = (5, 11);

/// A profile that permits this program alone, which is better than permitting all.
const APPARMOR_REMEDY: &str = "permit it to this program alone, as root: `printf 'abi <abi/4.0>,\\ninclude \
                               <tunables/global>\\nprofile h123 /path/to/h123 flags=(unconfined) {\\n  userns,\\n}\\n' > \
                               /etc/apparmor.d/h123 && apparmor_parser -r /etc/apparmor.d/h123`; or to all programs: \
                               `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`";

/// What a lab needs, and for each part that is missing why and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// The kernel's release, where it is new enough: an older one has no wait for sockets to the nanosecond
    /// (`epoll_pwait2`), which clients use.
    pub kernel: Result<String, Missing>,
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
        self.kernel.clone()?;
        self.packet_sockets.clone()?;
        self.namespaces.clone()
    }
}

/// Finds out what this process may do, without changing it: a child process tries.
pub fn probe() -> Capability {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let access = if has_capabilities() { Access::Direct } else { Access::UserNamespace };
    match netns::try_out(access == Access::UserNamespace) {
        Ok(trial) => judge(&release, access, trial, &|file| std::fs::read_to_string(file).ok()),
        Err(error) => {
            let missing = Missing {
                what: "namespaces",
                why: format!("no process could be started to try them ({error})"),
                remedy: "raise the limit on processes (`ulimit -u`) or free memory".to_owned(),
            };
            Capability {
                kernel: judge_kernel(&release),
                namespaces: Err(missing.clone()),
                packet_sockets: Err(missing.clone()),
                realtime: Err(missing),
            }
        }
    }
}

/// Whether an ordinary user may have more than one user inside a user namespace, which takes `newuidmap` and a range of
/// numbers in /etc/subuid. The lab itself needs one user only.
///
/// # Errors
/// What is missing, what that means, and the remedy.
pub fn several_users() -> Result<(), Missing> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_program = std::env::split_paths(&path).any(|folder| folder.join("newuidmap").is_file());
    let ranges = std::fs::read_to_string("/etc/subuid").unwrap_or_default();
    judge_users(has_program, &ranges, rustix::process::getuid().as_raw(), user_name().as_deref())
}

fn judge_users(has_program: bool, ranges: &str, uid: u32, name: Option<&str>) -> Result<(), Missing> {
    let uid = uid.to_string();
    let has_range = ranges
        .lines()
        .filter_map(|line| line.split(':').next())
        .any(|user| user == uid || Some(user) == name);
    let (why, remedy) = if uid == "0" || (has_program && has_range) {
        return Ok(());
    } else if has_program {
        let name = name.unwrap_or(&uid);
        (
            format!("/etc/subuid has no range of numbers for {name}"),
            format!(
                "`usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}` as root adds one"
            ),
        )
    } else {
        ("there is no newuidmap".to_owned(), "`apt-get install uidmap` as root brings it".to_owned())
    };
    Err(Missing {
        what: "several users in a lab",
        why: format!(
            "{why}, so inside a lab there is one user, and programs that change to another (su, apt) fail there; h123 \
             and its servers need no other"
        ),
        remedy,
    })
}

/// This user's name in /etc/passwd.
fn user_name() -> Option<String> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut users = passwd.lines().map(|line| line.split(':'));
    users.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
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

/// Judges a kernel by its release, such as `6.1.0-13-amd64`.
fn judge_kernel(release: &str) -> Result<String, Missing> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse::<u32>().ok());
    let (major, minor) = (numbers.next().flatten(), numbers.next().flatten());
    let (least_major, least_minor) = LEAST_KERNEL;
    if (major, minor) >= (Some(least_major), Some(least_minor)) {
        return Ok(release.to_owned());
    }
    Err(Missing {
        what: "a newer kernel",
        why: format!(
            "found Linux {release}, expected {least_major}.{least_minor} or newer, which clients need"
        ),
        remedy: "install a newer kernel and restart".to_owned(),
    })
}

fn judge(release: &str, access: Access, trial: Trial, read: ReadFile<'_>) -> Capability {
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
            remedy: "permit it with the line `YOUR-NAME - rtprio 10` in /etc/security/limits.conf and log in anew \
                     (the limit RLIMIT_RTPRIO also counts inside a user namespace), or run as root, or keep the \
                     machine idle while measuring"
                .to_owned(),
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
    Capability { kernel: judge_kernel(release), namespaces, packet_sockets, realtime }
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
            "AppArmor takes the rights inside user namespaces of ordinary users away, as Ubuntu has it since 23.10",
            APPARMOR_REMEDY,
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

    const KERNEL: &str = "6.1.0-13-amd64";
    const ALL: Trial = Trial { user_namespace: 0, other_namespaces: 0, packet_socket: 0, realtime: 0 };
    const NOTHING: Trial = Trial {
        user_namespace: libc::EPERM,
        other_namespaces: NOT_TRIED,
        packet_socket: NOT_TRIED,
        realtime: libc::EPERM,
    };

    #[test]
    fn all_is_well() {
        let found = judge(KERNEL, Access::Direct, ALL, &|_| None);
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
            let missing = judge(KERNEL, Access::UserNamespace, NOTHING, &read).emulation().unwrap_err();
            assert!(missing.remedy.contains(remedy), "{file}: {missing}");
        }
        let missing = judge(KERNEL, Access::UserNamespace, NOTHING, &|_| None).emulation().unwrap_err();
        assert!(missing.why.contains("seccomp"), "{missing}");
        let stripped = Trial { other_namespaces: libc::EPERM, user_namespace: 0, ..NOTHING };
        let read =
            |asked: &Path| asked.ends_with("apparmor_restrict_unprivileged_userns").then(|| "1".to_owned());
        let missing = judge(KERNEL, Access::UserNamespace, stripped, &read).emulation().unwrap_err();
        assert!(missing.why.contains("AppArmor"), "{missing}");
    }

    #[test]
    fn an_old_kernel_is_named() {
        for release in [KERNEL, "5.11.0", "5.11-rc1", "10.0"] {
            assert_eq!(judge_kernel(release), Ok(release.to_owned()));
        }
        for release in ["5.10.0-30-amd64", "4.19.0", "nonsense", ""] {
            let missing = judge("5.10.0", Access::Direct, ALL, &|_| None).emulation().unwrap_err();
            assert!(missing.why.contains("found Linux 5.10.0, expected 5.11 or newer"), "{missing}");
            assert!(judge_kernel(release).is_err(), "{release}");
        }
    }

    #[test]
    fn several_users_take_a_program_and_a_range() {
        assert_eq!(judge_users(false, "", 0, Some("root")), Ok(()));
        assert_eq!(judge_users(true, "ann:100000:65536\n", 1000, Some("ann")), Ok(()));
        assert_eq!(judge_users(true, "1000:100000:65536\n", 1000, None), Ok(()));
        let missing = judge_users(true, "bob:100000:65536\n", 1000, Some("ann")).unwrap_err();
        assert!(missing.remedy.contains("usermod") && missing.remedy.contains("ann"), "{missing}");
        let missing = judge_users(false, "ann:100000:65536\n", 1000, Some("ann")).unwrap_err();
        assert!(missing.remedy.contains("uidmap"), "{missing}");
    }

    #[test]
    fn a_user_lacks_real_time_only() {
        let trial = Trial { realtime: libc::EPERM, ..ALL };
        let found = judge(KERNEL, Access::UserNamespace, trial, &|_| None);
        assert_eq!(found.emulation(), Ok(Access::UserNamespace));
        let missing = found.realtime.unwrap_err();
        assert!(missing.remedy.contains("root") && missing.remedy.contains("rtprio"), "{missing}");
    }
}
