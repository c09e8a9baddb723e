//! Processes inside a node: starting, waiting for the end and its resource usage, stopping.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};
use rustix::time::Timespec;

use crate::clock::nanoseconds;
use crate::error::{LabError, Step};
use crate::procfs::{Schedule, Stat, tick_ns, tids, user_part_ns};
use crate::{affinity, limits};

/// A program to start.
#[derive(Debug)]
pub struct Program {
    /// The executable, looked up in PATH where it has no slash.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables added to the tool's own environment.
    pub env: Vec<(OsString, OsString)>,
    /// Whether to start with an empty environment.
    pub has_clean_env: bool,
    /// Its working directory; the tool's own where `None`.
    pub directory: Option<PathBuf>,
    /// Its standard input.
    pub stdin: Input,
    /// Its standard output.
    pub stdout: Output,
    /// Its standard error.
    pub stderr: Output,
    /// The CPUs that it may use; all where empty.
    pub cpus: Vec<usize>,
    /// The longest file that it may write; longer writes fail (EFBIG). No limit where `None`.
    pub file_limit_bytes: Option<u64>,
    /// How many files it may open at least, as far as the hard limit allows; where `None`, what this process
    /// was started with.
    pub open_files: Option<u64>,
    /// Whether it stays in the tool's process group, so that Ctrl-C on the terminal reaches it too.
    pub is_foreground: bool,
}

/// The standard input of a process.
#[derive(Debug)]
pub enum Input {
    /// Empty.
    Null,
    /// The tool's own standard input.
    Inherit,
    /// A pipe: [`Process::take_stdin`].
    Pipe,
    /// These bytes, then the end.
    Bytes(Vec<u8>),
}

/// An output of a process.
#[derive(Debug)]
pub enum Output {
    /// Discarded.
    Null,
    /// The tool's own.
    Inherit,
    /// A pipe: [`Process::take_stdout`].
    Pipe,
    /// A file.
    File(File),
}

/// How a process ended and the resources that it and its awaited children used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit status.
    pub status: ExitStatus,
    /// CPU time in user space, in nanoseconds (of microsecond resolution).
    pub cpu_user_ns: u64,
    /// CPU time in the kernel.
    pub cpu_system_ns: u64,
    /// Peak resident memory.
    pub max_resident_bytes: u64,
    /// Context switches because it waited.
    pub voluntary_switches: u64,
    /// Context switches because it was preempted.
    pub involuntary_switches: u64,
}

/// A running process; dropping this kills it.
#[derive(Debug)]
pub struct Process {
    child: Arc<Child>,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
}

/// A child of this process, shared between its [`Process`] and its node.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    /// Program and first argument, each followed by a zero byte, as in `/proc/PID/cmdline`.
    command: Vec<u8>,
    has_own_group: bool,
    handle: OwnedFd,
    exit: Mutex<Option<Exit>>,
}

impl Program {
    /// A program without arguments, with empty input and the tool's outputs.
    pub fn new(program: impl Into<OsString>) -> Program {
        Program {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            has_clean_env: false,
            directory: None,
            stdin: Input::Null,
            stdout: Output::Inherit,
            stderr: Output::Inherit,
            cpus: Vec::new(),
            file_limit_bytes: None,
            open_files: None,
            is_foreground: false,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Program {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: Input) -> Program {
        self.stdin = stdin;
        self
    }

    /// Sets the standard output.
    #[must_use]
    pub fn stdout(mut self, stdout: Output) -> Program {
        self.stdout = stdout;
        self
    }

    /// Sets the standard error.
    #[must_use]
    pub fn stderr(mut self, stderr: Output) -> Program {
        self.stderr = stderr;
        self
    }

    /// Starts it as a child of the calling thread, in that thread's namespaces. With `dies_with_thread` the
    /// kernel kills it when that thread ends.
    pub(crate) fn spawn(self, dies_with_thread: bool) -> Result<Process, LabError> {
        let name = self.program.to_string_lossy().into_owned();
        let what = || format!("starting `{name}`");
        let shown = command_line(&self.program, &self.args);
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.args);
        if self.has_clean_env {
            command.env_clear();
        }
        command.envs(self.env);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdin(self.stdin.into_stdio().step(what)?);
        command.stdout(self.stdout.into_stdio()).stderr(self.stderr.into_stdio());
        if !self.is_foreground {
            command.process_group(0);
        }
        if dies_with_thread {
            die_with_parent(&mut command);
        }
        if let Some(bytes) = self.file_limit_bytes {
            limit_files(&mut command, bytes);
        }
        if let Some(limit) = limits::of_child(self.open_files) {
            limit_open_files(&mut command, limit);
        }
        let mut child = affinity::with(&self.cpus, || command.spawn()).step(what)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let child = Child::new(child.id(), shown, !self.is_foreground).step(what)?;
        Ok(Process { child: Arc::new(child), stdin, stdout })
    }
}

impl Input {
    fn into_stdio(self) -> io::Result<Stdio> {
        Ok(match self {
            Input::Null => Stdio::null(),
            Input::Inherit => Stdio::inherit(),
            Input::Pipe => Stdio::piped(),
            // A file in memory, so that no thread has to write while the process reads.
            Input::Bytes(bytes) => {
                let mut file =
                    File::from(rustix::fs::memfd_create("input", rustix::fs::MemfdFlags::CLOEXEC)?);
                file.write_all(&bytes)?;
                io::Seek::rewind(&mut file)?;
                file.into()
            }
        })
    }
}

impl Output {
    fn into_stdio(self) -> Stdio {
        match self {
            Output::Null => Stdio::null(),
            Output::Inherit => Stdio::inherit(),
            Output::Pipe => Stdio::piped(),
            Output::File(file) => file.into(),
        }
    }
}

impl Process {
    /// Its PID in the tool's PID namespace.
    pub fn pid(&self) -> u32 {
        self.child.pid().cast_unsigned()
    }

    /// Takes the pipe to its standard input.
    pub const fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Takes the pipe from its standard output.
    pub const fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// waitpid(2) failed.
    pub fn wait(&self) -> Result<Exit, LabError> {
        loop {
            if let Some(exit) = self.wait_timeout(Duration::from_secs(3600))? {
                return Ok(exit);
            }
        }
    }

    /// Waits for its end, at most for `timeout`; `None` where it still runs.
    ///
    /// # Errors
    /// waitpid(2) failed.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Option<Exit>, LabError> {
        self.child.wait(Some(timeout)).step(|| format!("waiting for process {}", self.pid()))
    }

    /// Sends it a signal, without effect where it has ended.
    pub fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Sends SIGTERM, and kills the process with its process group where it still runs after `grace`.
    ///
    /// # Errors
    /// waitpid(2) failed.
    pub fn stop(&self, grace: Duration) -> Result<Exit, LabError> {
        self.child.signal(Signal::TERM);
        if let Some(exit) = self.wait_timeout(grace)? {
            return Ok(exit);
        }
        self.kill()
    }

    /// Kills it with its process group and waits for its end.
    ///
    /// # Errors
    /// waitpid(2) failed.
    pub fn kill(&self) -> Result<Exit, LabError> {
        self.child.kill();
        self.wait()
    }

    /// CPU time up to now in user space and in the kernel, in nanoseconds, with the children that it waited
    /// for.
    pub fn cpu_ns(&self) -> (u64, u64) {
        self.child.cpu_ns()
    }

    /// Time up to now that its threads were runnable without running; 0 once it has ended.
    pub fn run_queue_ns(&self) -> u64 {
        match *self.child.exit() {
            Some(_) => 0,
            None => run_queue_of_running_ns(self.child.pid()),
        }
    }

    pub(crate) fn child(&self) -> Arc<Child> {
        Arc::clone(&self.child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill();
        let _: Result<_, _> = self.child.wait(None);
    }
}

impl Child {
    fn new(pid: u32, command: Vec<u8>, has_own_group: bool) -> io::Result<Child> {
        let pid = Pid::from_raw(pid.cast_signed()).ok_or(io::ErrorKind::InvalidInput)?;
        let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Child { pid, command, has_own_group, handle, exit: Mutex::new(None) })
    }

    /// Its PID in the tool's PID namespace.
    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Program and first argument, each followed by a zero byte.
    pub(crate) fn command(&self) -> &[u8] {
        &self.command
    }

    pub(crate) fn exit(&self) -> MutexGuard<'_, Option<Exit>> {
        self.exit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) {
        // It may have ended already.
        let _: Result<_, _> = rustix::process::pidfd_send_signal(&self.handle, signal);
    }

    /// Kills it and its process group. After the process was waited for, its PID may belong to another
    /// process, so nothing is killed then.
    pub(crate) fn kill(&self) {
        let exit = self.exit();
        if exit.is_none() {
            self.signal(Signal::KILL);
            if self.has_own_group {
                let _: Result<_, _> = rustix::process::kill_process_group(self.pid, Signal::KILL);
            }
        }
    }

    /// Waits for its end, without limit where there is no timeout.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<Option<Exit>> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            if let Some(exit) = self.reap()? {
                return Ok(Some(exit));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let mut watched = [rustix::event::PollFd::new(&self.handle, rustix::event::PollFlags::IN)];
            match rustix::event::poll(&mut watched, left.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Its end, where it has ended. The first call reaps the process.
    fn reap(&self) -> io::Result<Option<Exit>> {
        let mut exit = self.exit();
        if exit.is_none() {
            *exit = wait4(self.pid)?;
        }
        Ok(*exit)
    }

    /// CPU time up to now in user space and in the kernel.
    pub(crate) fn cpu_ns(&self) -> (u64, u64) {
        match *self.exit() {
            Some(exit) => (exit.cpu_user_ns, exit.cpu_system_ns),
            None => cpu_of_running_ns(self.pid()),
        }
    }
}

impl AsFd for Process {
    /// Readable once the process has ended (pidfd_open(2)), for event loops.
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.child.handle.as_fd()
    }
}

fn command_line(program: &OsString, args: &[OsString]) -> Vec<u8> {
    let mut line = Vec::new();
    for word in std::iter::once(program).chain(args.first()) {
        line.extend(word.as_bytes());
        line.push(0);
    }
    line
}

fn die_with_parent(command: &mut std::process::Command) {
    let arm = || Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: the closure makes one system call; it neither allocates nor locks.
    unsafe { command.pre_exec(arm) };
}

/// Limits the length of files (setrlimit(2)). The signal that would end the process is ignored, so that its
/// writes fail instead; programs that handle the signal end.
fn limit_files(command: &mut std::process::Command, bytes: u64) {
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    let arm = move || {
        // SAFETY: the call sets the disposition of a signal of this process.
        if unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
        Ok(rustix::process::setrlimit(Resource::Fsize, limit)?)
    };
    // SAFETY: the closure makes two system calls; it neither allocates nor locks.
    unsafe { command.pre_exec(arm) };
}

/// Gives a process another limit of open files than this one has.
fn limit_open_files(command: &mut std::process::Command, limit: Rlimit) {
    let arm = move || Ok(rustix::process::setrlimit(Resource::Nofile, limit)?);
    // SAFETY: the closure makes one system call; it neither allocates nor locks.
    unsafe { command.pre_exec(arm) };
}

fn wait4(pid: Pid) -> io::Result<Option<Exit>> {
    let mut status = 0;
    // SAFETY: all zeros is a valid `rusage`, which holds integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both results outlive the call; the process is a child that only this function waits for.
    let result =
        unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, libc::WNOHANG, &raw mut usage) };
    match result {
        0 => Ok(None),
        result if result < 0 => Err(io::Error::last_os_error()),
        _ => Ok(Some(Exit {
            status: ExitStatus::from_raw(status),
            cpu_user_ns: microseconds_ns(usage.ru_utime),
            cpu_system_ns: microseconds_ns(usage.ru_stime),
            max_resident_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
            voluntary_switches: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
            involuntary_switches: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
        })),
    }
}

fn microseconds_ns(time: libc::timeval) -> u64 {
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_usec) * 1000
}

/// CPU time of a running process and of the children that it waited for, in user space and in the kernel;
/// zero where there is no such process.
pub(crate) fn cpu_of_running_ns(pid: i32) -> (u64, u64) {
    let text = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some(stat) = Stat::parse(&text) else { return (0, 0) };
    let (user, system, tick_ns) = (stat.user_ticks, stat.system_ticks, tick_ns());
    let total_ns = process_clock_ns(pid).unwrap_or((user + system) * tick_ns);
    let user_ns = user_part_ns(total_ns, user, system);
    let (children_user, children_system) = stat.children_ticks;
    (user_ns + children_user * tick_ns, total_ns - user_ns + children_system * tick_ns)
}

/// Time up to now that the threads of a running process were runnable without running (second field of
/// schedstat).
pub(crate) fn run_queue_of_running_ns(pid: i32) -> u64 {
    let waited = |tid| {
        let text = std::fs::read(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
        Some(Schedule::parse(&text)?.waited_ns)
    };
    tids(pid).filter_map(waited).sum()
}

/// CPU time of a process and all its threads up to now; `None` where the process is gone.
pub(crate) fn process_clock_ns(pid: i32) -> Option<u64> {
    // clock_getcpuclockid(3): the complement of the PID, shifted, with CPUCLOCK_SCHED.
    let clock: libc::clockid_t = (!pid << 3) | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the result outlives the call.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result >= 0).then(|| nanoseconds(Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_ends_at_the_limit_and_the_process_continues() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let program = Program {
            file_limit_bytes: Some(5_000),
            stdout: Output::File(File::create(&path).unwrap()),
            ..Program::new("sh").args(["-c", "yes 2>/dev/null; exit 7"])
        };
        let exit = program.spawn(true).unwrap().wait().unwrap();
        assert_eq!(exit.status.code(), Some(7));
        assert_eq!(path.metadata().unwrap().len(), 5_000);
    }
}
