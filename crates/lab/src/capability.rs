//! Which capabilities of a lab this machine and this user have, and how to get the missing ones.

use std::io;
use std::path::Path;

use crate::error::MissingCapability;
use crate::netns::{self, NOT_TRIED, Trial};

/// The capabilities that building a lab requires (capabilities(7)): CAP_NET_ADMIN, CAP_NET_RAW,
/// CAP_SYS_ADMIN.
const NEEDED_CAPABILITIES: u64 = 1 << 12 | 1 << 13 | 1 << 21;

/// The first kernel with `epoll_pwait2`: major and minor.
const LEAST_KERNEL: (u32, u32) = (5, 11);

/// A profile that permits only this program is safer than permitting all programs.
const APPARMOR_REMEDY: &str = "permit it for this program only, as root: `printf 'abi <abi/4.0>,\\ninclude \
                               <tunables/global>\\nprofile h123 /path/to/h123 flags=(unconfined) {\\n  userns,\\n}\\n' > \
                               /etc/apparmor.d/h123 && apparmor_parser -r /etc/apparmor.d/h123`; or for all programs: \
                               `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`";

const CONTAINER_REMEDY: &str = "start the container with `--privileged`, or with `--cap-add SYS_ADMIN --cap-add \
                                NET_ADMIN --cap-add NET_RAW --security-opt seccomp=unconfined --security-opt \
                                apparmor=unconfined --security-opt systempaths=unconfined`";

/// What a lab needs; for each missing part the reason and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// The kernel's release. Clients need `epoll_pwait2`, which waits for sockets with nanosecond precision.
    pub kernel: Result<String, MissingCapability>,
    /// Network, mount and PID namespaces; emulation requires them.
    pub namespaces: Result<Access, MissingCapability>,
    /// Packet sockets (AF_PACKET) inside them; emulation requires them.
    pub packet_sockets: Result<(), MissingCapability>,
    /// Real-time priority for the emulator (SCHED_FIFO). Without it frames may be late on a busy machine.
    pub realtime: Result<(), MissingCapability>,
}

/// How this process can create namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Directly.
    Direct,
    /// After moving into a new user namespace.
    UserNamespace,
}

impl Capability {
    /// Whether networks can be emulated.
    ///
    /// # Errors
    /// The first missing capability.
    pub fn emulation(&self) -> Result<Access, MissingCapability> {
        self.kernel.clone()?;
        self.packet_sockets.clone()?;
        self.namespaces.clone()
    }
}

/// Finds out which capabilities this process has. A child process tries them, so this process stays
/// unchanged.
pub fn probe() -> Capability {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let access = if has_capabilities() { Access::Direct } else { Access::UserNamespace };
    match netns::try_out(access == Access::UserNamespace) {
        Ok(trial) => {
            let is_root = rustix::process::geteuid().is_root();
            judge(&release, access, is_root, trial, &read_file)
        }
        Err(error) => {
            let missing = MissingCapability::new(
                "namespaces",
                format!("no process could be started to try them ({error})"),
                "raise the limit on processes (`ulimit -u`) or free memory",
            );
            Capability {
                kernel: judge_kernel(&release),
                namespaces: Err(missing.clone()),
                packet_sockets: Err(missing.clone()),
                realtime: Err(missing),
            }
        }
    }
}

/// Whether an ordinary user can have several users inside a user namespace, which requires `newuidmap` and a
/// range of user IDs in /etc/subuid. The lab itself needs one user.
///
/// # Errors
/// What is missing, the consequence, and the remedy.
pub fn several_users() -> Result<(), MissingCapability> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_program = std::env::split_paths(&path).any(|folder| folder.join("newuidmap").is_file());
    let ranges = std::fs::read_to_string("/etc/subuid").unwrap_or_default();
    judge_users(has_program, &ranges, rustix::process::getuid().as_raw(), user_name().as_deref())
}

fn judge_users(
    has_program: bool,
    ranges: &str,
    uid: u32,
    name: Option<&str>,
) -> Result<(), MissingCapability> {
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
            format!("/etc/subuid has no range of user IDs for {name}"),
            format!(
                "`usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}` as root adds one"
            ),
        )
    } else {
        ("newuidmap is not installed".to_owned(), "`apt-get install uidmap` as root installs it".to_owned())
    };
    let why = format!(
        "{why}, so a lab has one user, and programs that change to another user (su, apt) fail there; h123 and its \
         servers need one user only"
    );
    Err(MissingCapability::new("several users in a lab", why, remedy))
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

/// Enables this process to build labs. Call it once, at the start, while the process has a single thread.
///
/// With the capabilities of root it changes nothing, because real-time priority would be refused inside a
/// user namespace. Otherwise the process moves into a user namespace in which it is root.
///
/// # Errors
/// User namespaces are not permitted here, or the process has more than one thread.
pub fn enter() -> Result<Access, MissingCapability> {
    if has_capabilities() {
        return Ok(Access::Direct);
    }
    let missing = |error: io::Error| user_namespace_missing(error.raw_os_error().unwrap_or(0), &read_file);
    netns::unshare_user().map(|()| Access::UserNamespace).map_err(missing)
}

/// Fails where this process lacks the capabilities to build a lab.
pub(crate) fn require() -> Result<(), MissingCapability> {
    if has_capabilities() {
        return Ok(());
    }
    Err(MissingCapability::new(
        "namespaces",
        "this process may not create them",
        "run as root, or permit unprivileged user namespaces (`h123 doctor` shows what prevents them)",
    ))
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

fn read_file(file: &Path) -> Option<String> {
    std::fs::read_to_string(file).ok()
}

/// Judges a kernel by its release, such as `6.1.0-13-amd64`.
fn judge_kernel(release: &str) -> Result<String, MissingCapability> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse::<u32>().ok());
    let (major, minor) = (numbers.next().flatten(), numbers.next().flatten());
    let (least_major, least_minor) = LEAST_KERNEL;
    if (major, minor) >= (Some(least_major), Some(least_minor)) {
        return Ok(release.to_owned());
    }
    let why = format!("this is Linux {release}, and clients need {least_major}.{least_minor} or newer");
    Err(MissingCapability::new("a newer kernel", why, "install a newer kernel and restart"))
}

fn judge(release: &str, access: Access, is_root: bool, trial: Trial, read: ReadFile<'_>) -> Capability {
    // Root without its capabilities is root of a container, and what an ordinary user can do does not help.
    let is_contained = is_root && access == Access::UserNamespace;
    let namespaces = match (trial.user_namespace, trial.other_namespaces) {
        (0, 0) if trial.private_mounts == 0 => Ok(access),
        (0, 0) => Err(mounts_missing(trial.private_mounts)),
        (0, errno) | (errno, _) if is_contained => Err(container_missing(errno)),
        (0, errno) => Err(other_namespaces_missing(access, errno, read)),
        (errno, _) => Err(user_namespace_missing(errno, read)),
    };
    let packet_sockets = match (&namespaces, trial.packet_socket) {
        (_, 0) => Ok(()),
        (Err(missing), NOT_TRIED) => Err(missing.clone()),
        (_, errno) => Err(MissingCapability::new(
            "packet sockets",
            format!("the kernel refuses AF_PACKET inside a namespace ({})", reason(errno)),
            "use a kernel with CONFIG_PACKET, or permit it in the container's seccomp profile",
        )),
    };
    let realtime = match (trial.realtime, access) {
        (0, _) => Ok(()),
        (errno, Access::UserNamespace) if !is_contained => Err(MissingCapability::new(
            "real-time priority",
            format!("the kernel refuses SCHED_FIFO to an ordinary user ({})", reason(errno)),
            "permit it with the line `YOUR-NAME - rtprio 10` in /etc/security/limits.conf and log in again \
             (RLIMIT_RTPRIO also applies inside a user namespace), or run as root, or keep the machine idle while \
             measuring",
        )),
        (errno, _) => Err(MissingCapability::new(
            "real-time priority",
            format!("the kernel refuses SCHED_FIFO to this root ({})", reason(errno)),
            "leave the user namespace, or give the container CAP_SYS_NICE (`--cap-add SYS_NICE`), or keep the machine idle while measuring",
        )),
    };
    Capability { kernel: judge_kernel(release), namespaces, packet_sockets, realtime }
}

fn user_namespace_missing(errno: i32, read: ReadFile<'_>) -> MissingCapability {
    let setting = |file: &str| read(Path::new("/proc/sys").join(file).as_path());
    let is = |file: &str, value: &str| setting(file).is_some_and(|found| found.trim() == value);
    let (why, remedy) = if is("user/max_user_namespaces", "0") {
        ("the limit on user namespaces is 0", "`sysctl -w user.max_user_namespaces=10000` as root raises it")
    } else if is("kernel/unprivileged_userns_clone", "0") {
        (
            "this kernel reserves user namespaces for root",
            "`sysctl -w kernel.unprivileged_userns_clone=1` as root permits them",
        )
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        (
            "AppArmor removes the capabilities inside user namespaces of ordinary users (Ubuntu since 23.10)",
            APPARMOR_REMEDY,
        )
    } else if errno == libc::EINVAL {
        (
            "the process has several threads, or this kernel has no user namespaces",
            "enter the namespace before the first thread starts, or use a kernel with CONFIG_USER_NS",
        )
    } else if errno == libc::ENOSPC {
        (
            "there are too many user namespaces, or they are nested too deep",
            "leave the outer namespace, or raise user.max_user_namespaces",
        )
    } else {
        (
            "the system refuses user namespaces, perhaps by a container's seccomp profile",
            "run as root on the machine itself, or start the container with `--privileged`",
        )
    };
    MissingCapability::new("namespaces", format!("{why} ({})", reason(errno)), remedy)
}

/// What root of a container lacks.
fn container_missing(errno: i32) -> MissingCapability {
    let why = format!(
        "this root lacks CAP_SYS_ADMIN, CAP_NET_ADMIN or CAP_NET_RAW, as in a container, and may not create a user \
         namespace instead ({})",
        reason(errno)
    );
    MissingCapability::new("namespaces", why, CONTAINER_REMEDY)
}

fn other_namespaces_missing(access: Access, errno: i32, read: ReadFile<'_>) -> MissingCapability {
    // AppArmor permits the user namespace and then removes its capabilities.
    if access == Access::UserNamespace && errno == libc::EPERM {
        return user_namespace_missing(errno, read);
    }
    // Root has the capabilities, and a seccomp profile or a security module refuses.
    if errno == libc::EPERM || errno == libc::EACCES {
        let why = format!("this root may not create network, mount or PID namespaces ({})", reason(errno));
        return MissingCapability::new("namespaces", why, CONTAINER_REMEDY);
    }
    MissingCapability::new(
        "namespaces",
        format!("the kernel refuses network, mount or PID namespaces ({})", reason(errno)),
        "use a kernel with CONFIG_NET_NS and CONFIG_PID_NS, or raise user.max_net_namespaces",
    )
}

/// Why the mounts of a node cannot be separated from the machine's.
fn mounts_missing(errno: i32) -> MissingCapability {
    if errno == libc::EINVAL {
        let why = format!("the root folder is not a mount point, as after chroot(2) ({})", reason(errno));
        let remedy = "enter the folder with `systemd-nspawn -D FOLDER`, or with `mount --rbind FOLDER FOLDER` and \
                      pivot_root(8) inside `unshare --mount`";
        return MissingCapability::new("namespaces", why, remedy);
    }
    let why = format!("the kernel refuses to separate mounts ({})", reason(errno));
    MissingCapability::new("namespaces", why, CONTAINER_REMEDY)
}

fn reason(errno: i32) -> String {
    io::Error::from_raw_os_error(errno).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "6.1.0-13-amd64";
    const ALL: Trial =
        Trial { user_namespace: 0, other_namespaces: 0, private_mounts: 0, packet_socket: 0, realtime: 0 };
    const NOTHING: Trial = Trial {
        user_namespace: libc::EPERM,
        other_namespaces: NOT_TRIED,
        private_mounts: NOT_TRIED,
        packet_socket: NOT_TRIED,
        realtime: libc::EPERM,
    };

    #[test]
    fn everything_is_available() {
        let found = judge(KERNEL, Access::Direct, true, ALL, &|_| None);
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
            let missing =
                judge(KERNEL, Access::UserNamespace, false, NOTHING, &read).emulation().unwrap_err();
            assert!(missing.remedy.contains(remedy), "{file}: {missing}");
        }
        let missing =
            judge(KERNEL, Access::UserNamespace, false, NOTHING, &|_| None).emulation().unwrap_err();
        assert!(missing.why.contains("seccomp"), "{missing}");
        let stripped = Trial { other_namespaces: libc::EPERM, user_namespace: 0, ..NOTHING };
        let read =
            |asked: &Path| asked.ends_with("apparmor_restrict_unprivileged_userns").then(|| "1".to_owned());
        let missing = judge(KERNEL, Access::UserNamespace, false, stripped, &read).emulation().unwrap_err();
        assert!(missing.why.contains("AppArmor"), "{missing}");
    }

    #[test]
    fn a_chroot_is_no_root_folder_for_a_lab() {
        let found =
            judge(KERNEL, Access::Direct, true, Trial { private_mounts: libc::EINVAL, ..ALL }, &|_| None);
        let missing = found.emulation().unwrap_err();
        assert!(missing.why.contains("chroot") && missing.remedy.contains("pivot_root"), "{missing}");
    }

    /// Root of a container cannot do what the advice to ordinary users says, and "run as root" is none.
    #[test]
    fn root_of_a_container_gets_its_own_remedies() {
        let restricted = |asked: &Path| asked.ends_with("unprivileged_userns_clone").then(|| "0".to_owned());
        let stripped = Trial { user_namespace: 0, other_namespaces: libc::EPERM, ..NOTHING };
        for (access, trial) in [
            (Access::UserNamespace, NOTHING),
            (Access::UserNamespace, stripped),
            (Access::Direct, Trial { other_namespaces: libc::EPERM, ..ALL }),
        ] {
            let found = judge(KERNEL, access, true, trial, &restricted);
            let missing = found.namespaces.unwrap_err();
            assert!(missing.remedy.contains("--cap-add SYS_ADMIN"), "{missing}");
            assert!(!missing.to_string().contains("run as root"), "{missing}");
        }
        let found =
            judge(KERNEL, Access::UserNamespace, true, Trial { realtime: libc::EPERM, ..ALL }, &|_| None);
        let missing = found.realtime.unwrap_err();
        assert!(
            missing.remedy.contains("--cap-add SYS_NICE") && !missing.remedy.contains("run as root"),
            "{missing}"
        );
    }

    #[test]
    fn an_old_kernel_is_named() {
        for release in [KERNEL, "5.11.0", "5.11-rc1", "10.0"] {
            assert_eq!(judge_kernel(release), Ok(release.to_owned()));
        }
        for release in ["5.10.0-30-amd64", "4.19.0", "nonsense", ""] {
            let missing = judge("5.10.0", Access::Direct, true, ALL, &|_| None).emulation().unwrap_err();
            assert!(
                missing.why.contains("this is Linux 5.10.0, and clients need 5.11 or newer"),
                "{missing}"
            );
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
        let found = judge(KERNEL, Access::UserNamespace, false, trial, &|_| None);
        assert_eq!(found.emulation(), Ok(Access::UserNamespace));
        let missing = found.realtime.unwrap_err();
        assert!(missing.remedy.contains("root") && missing.remedy.contains("rtprio"), "{missing}");
    }
}
