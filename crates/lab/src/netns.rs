//! Namespaces: the only file that unshares, enters and forks.
//!
//! No namespace has a name in the file system. A namespace lives while a thread is in it or a descriptor
//! refers to it, so every namespace ends with this process.

use std::fs::File;
use std::io::{self, Read};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::error::{LabError, Step};

/// Moves the calling thread into a new network namespace and returns a descriptor of it.
pub(crate) fn unshare_network() -> Result<OwnedFd, LabError> {
    unshare(UnshareFlags::NEWNET).step(|| "creating a network namespace".to_owned())?;
    current_network()
}

/// Moves the calling thread into new network, mount and PID namespaces. The PID namespace applies to the
/// thread's children; the first of them must be [`Init`].
pub(crate) fn unshare_node() -> Result<OwnedFd, LabError> {
    unshare(UnshareFlags::NEWNET | UnshareFlags::NEWNS | UnshareFlags::NEWPID)
        .step(|| "creating network, mount and PID namespaces".to_owned())?;
    rustix::mount::mount_change(
        "/",
        rustix::mount::MountPropagationFlags::PRIVATE | rustix::mount::MountPropagationFlags::REC,
    )
    .step(|| "separating the node's mounts from the machine's".to_owned())?;
    current_network()
}

/// Moves the whole process, which must have a single thread, into a user namespace in which it is root.
pub(crate) fn unshare_user() -> io::Result<()> {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    unshare(UnshareFlags::NEWUSER)?;
    // A group map may be written only after setgroups(2) is denied (user_namespaces(7)).
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {gid} 1"))
}

/// Moves the calling thread into the given network namespace.
pub(crate) fn enter_network(network: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::thread::move_into_link_name_space(network, Some(LinkNameSpaceType::Network))?)
}

/// Moves the whole process, which must have a single thread, into the user namespace of a process, unless it
/// is there already.
pub(crate) fn join_user_namespace(pid: i32) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let theirs = File::open(format!("/proc/{pid}/ns/user"))?;
    let (own, other) = (std::fs::metadata("/proc/self/ns/user")?, theirs.metadata()?);
    if (own.dev(), own.ino()) == (other.dev(), other.ino()) {
        return Ok(());
    }
    Ok(rustix::thread::move_into_link_name_space(theirs.as_fd(), None)?)
}

/// Moves the calling thread into the network and mount namespaces of a process, and its children into the PID
/// namespace. The working directory keeps its path.
pub(crate) fn join_node(pid: i32) -> io::Result<()> {
    let open = |kind: &str| File::open(format!("/proc/{pid}/ns/{kind}"));
    let (network, processes, mounts) = (open("net")?, open("pid")?, open("mnt")?);
    let directory = std::env::current_dir()?;
    // A thread that shares its working directory with others may not change its mount namespace.
    unshare(UnshareFlags::FS)?;
    for namespace in [&network, &processes, &mounts] {
        rustix::thread::move_into_link_name_space(namespace.as_fd(), None)?;
    }
    std::env::set_current_dir(directory)
}

fn current_network() -> Result<OwnedFd, LabError> {
    let file =
        File::open("/proc/thread-self/ns/net").step(|| "opening the new network namespace".to_owned())?;
    Ok(file.into())
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: none of the flags that this file passes unshares the table of file descriptors, so no
    // descriptor that another thread holds changes its meaning.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Process 1 of a node. When it ends, the kernel kills every process of the node.
///
/// It ends with its parent thread (PR_SET_PDEATHSIG). If that thread ends before the signal is armed, process
/// 1 ends when the pipe from its parent closes.
#[derive(Debug)]
pub(crate) struct Init {
    pid: Pid,
    handle: OwnedFd,
    _lifeline: OwnedFd,
    /// Freed only after the process has ended.
    stack: ManuallyDrop<Stack>,
}

/// The stack of a process 1, aligned as ABIs demand. It makes system calls only.
type Stack = Box<[u128]>;
const STACK_BYTES: usize = 1 << 14;

impl Init {
    /// Starts process 1 from the calling thread, which must have called [`unshare_node`] and must outlive it.
    ///
    /// It shares the memory of this process: fork(2) would copy the page tables of all threads' stacks and
    /// rings, which takes 18 ms for each of a thousand nodes.
    pub(crate) fn start() -> Result<Init, LabError> {
        let what = || "starting process 1 of a node".to_owned();
        let (child_life, lifeline) = pipe().step(what)?;
        let (ready, child_ready) = pipe().step(what)?;
        let mut stack = ManuallyDrop::new(vec![0_u128; STACK_BYTES / size_of::<u128>()].into_boxed_slice());
        let mut pipes = [child_life.as_raw_fd(), child_ready.as_raw_fd()];
        // SAFETY: the child runs `init_main` on a separate stack, which is freed only after its end. It
        // makes system calls only, so that it neither allocates nor locks; where one fails, it sets `errno`
        // of this thread, which waits until the child has set itself up. `pipes` lives as long.
        let pid = unsafe {
            let top = stack.as_mut_ptr_range().end.cast();
            libc::clone(init_main, top, libc::CLONE_VM | libc::SIGCHLD, (&raw mut pipes).cast())
        };
        let pid = Pid::from_raw(pid.max(0)).ok_or_else(io::Error::last_os_error).step(what)?;
        // Its descriptors are copies; the end of these lets the read below end if the child ends.
        drop((child_life, child_ready));
        let is_ready = File::from(ready).read_exact(&mut [0]);
        is_ready.step(what)?;
        let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).step(what)?;
        Ok(Init { pid, handle, _lifeline: lifeline, stack })
    }

    /// Its number in this process's PID namespace.
    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Kills every process of the node without waiting.
    pub(crate) fn kill(&self) {
        // It may have ended already.
        let _: Result<_, _> = rustix::process::pidfd_send_signal(self.handle.as_fd(), Signal::KILL);
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        self.kill();
        // Returns once every process of the node is gone; those that this process spawned must have been
        // reaped.
        let ended = rustix::process::waitpid(Some(self.pid), rustix::process::WaitOptions::empty());
        if ended.is_ok() {
            // SAFETY: the process that ran on it has ended, and nothing uses it afterwards.
            unsafe { ManuallyDrop::drop(&mut self.stack) };
        }
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// Process 1: keeps only the two pipes of its parent, mounts the node's `/proc` where the kernel permits it,
/// lets the kernel reap orphans, and waits for its parent's end.
extern "C" fn init_main(pipes: *mut libc::c_void) -> libc::c_int {
    const ABOVE_STANDARD: libc::c_int = 10;
    // SAFETY: the parent passes two descriptors and waits meanwhile. System calls on descriptors that this
    // process owns, with pointers to static strings and to a local byte; no allocation, no lock, no
    // unwinding, as the memory is that of a process with threads.
    unsafe {
        let [lifeline, ready] = pipes.cast::<[RawFd; 2]>().read();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, c"h123-init".as_ptr());
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Ignored, so that the kernel reaps the orphans that process 1 inherits.
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        let lifeline = libc::fcntl(lifeline, libc::F_DUPFD, ABOVE_STANDARD);
        let ready = libc::fcntl(ready, libc::F_DUPFD, ABOVE_STANDARD);
        libc::dup2(lifeline, 0);
        libc::dup2(ready, 1);
        libc::syscall(libc::SYS_close_range, 2, libc::c_uint::MAX, 0);
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), flags, std::ptr::null());
        let mut byte = 1_u8;
        libc::write(1, (&raw const byte).cast(), 1);
        libc::close(1);
        while libc::read(0, (&raw mut byte).cast(), 1) != 0 {}
        libc::_exit(0)
    }
}

/// The results of a trial child: the error number of each step, 0 for success, [`NOT_TRIED`] after a failed
/// step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trial {
    pub(crate) user_namespace: i32,
    pub(crate) other_namespaces: i32,
    pub(crate) private_mounts: i32,
    pub(crate) packet_socket: i32,
    pub(crate) realtime: i32,
}

/// A step that was not reached.
pub(crate) const NOT_TRIED: i32 = -1;

const TRIAL_STEPS: usize = 5;

/// Tries in a child process what a lab needs, without changing this process.
pub(crate) fn try_out(needs_user_namespace: bool) -> io::Result<Trial> {
    let (answer, child_answer) = pipe()?;
    let uid_map = format!("0 {} 1", rustix::process::getuid().as_raw());
    let gid_map = format!("0 {} 1", rustix::process::getgid().as_raw());
    // SAFETY: the child calls nothing but `trial_main`, which makes system calls only and never returns.
    let pid = match unsafe { libc::fork() } {
        0 => {
            trial_main(child_answer.as_raw_fd(), needs_user_namespace, uid_map.as_bytes(), gid_map.as_bytes())
        }
        pid => Pid::from_raw(pid.max(0)).ok_or_else(io::Error::last_os_error)?,
    };
    drop(child_answer);
    let mut bytes = [0; TRIAL_STEPS * 4];
    let result = File::from(answer).read_exact(&mut bytes);
    rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())?;
    result?;
    let (words, _) = bytes.as_chunks();
    let steps = std::array::from_fn(|index| i32::from_ne_bytes(words[index]));
    let [user_namespace, other_namespaces, private_mounts, packet_socket, realtime] = steps;
    Ok(Trial { user_namespace, other_namespaces, private_mounts, packet_socket, realtime })
}

fn trial_main(answer: RawFd, needs_user_namespace: bool, uid_map: &[u8], gid_map: &[u8]) -> ! {
    let mut steps = [NOT_TRIED; TRIAL_STEPS];
    // SAFETY: system calls on descriptors of this process, with pointers to local and static bytes; no
    // allocation, no lock, no unwinding, as fork(2) demands of a child of a process with threads.
    unsafe {
        steps[4] = if crate::priority::may_be_realtime() { 0 } else { *libc::__errno_location() };
        steps[0] = if needs_user_namespace { try_user_namespace(uid_map, gid_map) } else { 0 };
        if steps[0] == 0 {
            steps[1] = failure(libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::CLONE_NEWPID));
        }
        if steps[1] == 0 {
            let (root, none) = (c"/".as_ptr(), std::ptr::null());
            let private = libc::MS_PRIVATE | libc::MS_REC;
            steps[2] = failure(libc::mount(none, root, none, private, none.cast()));
            steps[3] = failure(libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0));
        }
        if needs_user_namespace && steps[0] == 0 {
            // The emulator's thread runs inside the user namespace.
            steps[4] = if crate::priority::may_be_realtime() { 0 } else { *libc::__errno_location() };
        }
        libc::write(answer, steps.as_ptr().cast(), size_of_val(&steps));
        libc::_exit(0)
    }
}

/// # Safety
/// None beyond that of a child of fork(2): system calls only.
unsafe fn try_user_namespace(uid_map: &[u8], gid_map: &[u8]) -> i32 {
    // SAFETY: as in `trial_main`.
    unsafe {
        let mut error = failure(libc::unshare(libc::CLONE_NEWUSER));
        let files = [
            (c"/proc/self/setgroups", &b"deny"[..]),
            (c"/proc/self/uid_map", uid_map),
            (c"/proc/self/gid_map", gid_map),
        ];
        for (file, text) in files {
            if error == 0 {
                let fd = libc::open(file.as_ptr(), libc::O_WRONLY);
                error = failure(fd);
                if error == 0 && libc::write(fd, text.as_ptr().cast(), text.len()) < 0 {
                    error = *libc::__errno_location();
                }
            }
        }
        error
    }
}

/// The error number of a system call that returned `result`.
///
/// # Safety
/// None: it reads this thread's `errno`.
unsafe fn failure(result: libc::c_int) -> i32 {
    // SAFETY: the pointer is to this thread's own variable.
    if result < 0 { unsafe { *libc::__errno_location() } } else { 0 }
}
