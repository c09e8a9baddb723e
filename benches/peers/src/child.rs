//! Child processes: pinned to CPUs, accounted for, bounded in time, and gone when their owner goes.
//!
//! The one file with `unsafe`: the hook between `fork` and `exec`, and `wait4`, which the standard library lacks.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::{CpuSet, sched_setaffinity};

/// How often a child is asked whether it has ended: rare enough to cost nothing beside a measurement.
const POLL: Duration = Duration::from_millis(10);
/// A child that was asked to end may take so long.
const PATIENCE: Duration = Duration::from_secs(1);
/// At most so much of a child's output is read.
const OUTPUT_LIMIT_BYTES: u64 = 1 << 20;

/// A child process and whatever it starts: one process group, killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    name: String,
    child: Child,
    group: Pid,
    ended: bool,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// What a process that ended cost, with all its threads and the children that it waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    /// The most memory that it held at any time.
    pub(crate) peak_resident_bytes: u64,
}

impl Running {
    /// Starts a command on these CPUs; its output goes to two files in `folder`.
    ///
    /// # Errors
    /// The program is not there, or cannot be started.
    pub(crate) fn start(name: &str, mut command: Command, cpus: &[usize], folder: &Path) -> Result<Self> {
        let (stdout, stderr) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.err")));
        let create =
            |path: &Path| File::create(path).with_context(|| format!("cannot create {}", path.display()));
        command.stdin(Stdio::null()).stdout(create(&stdout)?).stderr(create(&stderr)?).process_group(0);
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu));
        let parent = rustix::process::getpid();
        // SAFETY: between fork and exec only async-signal-safe calls are made: three system calls on values that
        // were prepared before, without allocation or locks.
        unsafe {
            command.pre_exec(move || {
                sched_setaffinity(None, &set)?;
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
                // The parent may have died before the line above.
                if rustix::process::getppid() != Some(parent) {
                    return Err(std::io::Error::from(ErrorKind::NotConnected));
                }
                Ok(())
            });
        }
        let child = command.spawn().with_context(|| {
            format!("cannot start {name} ({}): is it installed?", command.get_program().display())
        })?;
        let group = Pid::from_child(&child);
        Ok(Running { name: name.to_owned(), child, group, ended: false, stdout, stderr })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the child wrote so far.
    pub(crate) fn stdout(&self) -> Result<String> {
        read_some(&self.stdout)
    }

    /// The last line that the child wrote to standard error, for messages.
    pub(crate) fn last_words(&self) -> String {
        let text = read_some(&self.stderr).unwrap_or_default();
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message").trim().to_owned()
    }

    /// Whether the child has ended; what it cost then.
    pub(crate) fn poll(&mut self) -> Result<Option<Ended>> {
        let ended = wait4_now(self.group).with_context(|| format!("cannot wait for {}", self.name))?;
        self.ended |= ended.is_some();
        Ok(ended)
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// It took longer than `limit`, or `stop` was set. The child is killed when `self` is dropped.
    pub(crate) fn wait(&mut self, limit: Duration, stop: &AtomicBool) -> Result<Ended> {
        let began = Instant::now();
        loop {
            if let Some(ended) = self.poll()? {
                return Ok(ended);
            }
            if stop.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            if began.elapsed() > limit {
                bail!("{} still ran after {} s, expected it to end", self.name, limit.as_secs());
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Failures have no reader here, and the group may be gone already.
        if !self.ended {
            let _ = kill_process_group(self.group, Signal::TERM);
            let began = Instant::now();
            while !self.ended && began.elapsed() < PATIENCE {
                if self.poll().is_err() {
                    break;
                }
                std::thread::sleep(POLL);
            }
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        if !self.ended {
            let _ = self.child.wait();
        }
    }
}

fn read_some(path: &Path) -> Result<String> {
    let context = || format!("cannot read {}", path.display());
    let mut bytes = Vec::new();
    File::open(path)
        .with_context(context)?
        .take(OUTPUT_LIMIT_BYTES)
        .read_to_end(&mut bytes)
        .with_context(context)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reaps a child if it has ended (`wait4(2)`).
fn wait4_now(pid: Pid) -> std::io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: `rusage` is plain numbers, for which all zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live, writable values of the types that wait4 fills.
    let reaped = unsafe { libc::wait4(pid.as_raw_pid(), &raw mut status, libc::WNOHANG, &raw mut usage) };
    match reaped {
        0 => Ok(None),
        -1 => match std::io::Error::last_os_error() {
            error if error.kind() == ErrorKind::Interrupted => Ok(None),
            error => Err(error),
        },
        _ => Ok(Some(Ended {
            status: ExitStatus::from_raw(status),
            user_ns: nanoseconds(usage.ru_utime),
            system_ns: nanoseconds(usage.ru_stime),
            // Linux counts in kibibytes (getrusage(2)).
            peak_resident_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024),
        })),
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(micros.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> (tempfile::TempDir, Running) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let cpu = crate::machine::cpus().unwrap()[0];
        let running = Running::start("sh", command, &[cpu], folder.path()).unwrap();
        (folder, running)
    }

    #[test]
    fn a_child_is_accounted_for_and_its_output_kept() {
        let stop = AtomicBool::new(false);
        let (_folder, mut child) =
            shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; echo why >&2; exit 3");
        let ended = child.wait(Duration::from_secs(60), &stop).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert!(ended.user_ns > 1_000_000, "{ended:?}");
        assert!(ended.peak_resident_bytes > 100_000, "{ended:?}");
        assert_eq!(child.stdout().unwrap(), "done\n");
        assert_eq!(child.last_words(), "why");
    }

    #[test]
    fn a_child_runs_on_its_cpu_only() {
        let stop = AtomicBool::new(false);
        let (_folder, mut child) = shell("grep Cpus_allowed_list /proc/self/status");
        child.wait(Duration::from_secs(60), &stop).unwrap();
        let cpu = crate::machine::cpus().unwrap()[0].to_string();
        assert_eq!(child.stdout().unwrap().split_whitespace().last(), Some(cpu.as_str()));
    }

    #[test]
    fn a_child_that_hangs_is_an_error_and_does_not_survive() {
        let (_folder, mut child) = shell("trap '' TERM; while :; do sleep 0.05; done");
        let error = child.wait(Duration::ZERO, &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().contains("still ran"), "{error}");
        assert!(child.wait(Duration::from_secs(60), &AtomicBool::new(true)).is_err());
        let pid = child.pid();
        drop(child);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let cpu = crate::machine::cpus().unwrap()[0];
        let error =
            Running::start("none", Command::new("/no/such/program"), &[cpu], folder.path()).unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}
