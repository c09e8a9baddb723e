//! Child processes of the harness: pinned to CPUs, accounted for, bounded in time, and killed when their
//! owner is dropped.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::{Exit, Input, Node, Output, Process, Program};

/// How often the harness checks whether a child has ended: rarely enough to cost nothing compared with a
/// measurement.
const POLL: Duration = Duration::from_millis(10);
/// How long a child may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most bytes of a child's output that are read.
const OUTPUT_LIMIT_BYTES: u64 = 1 << 20;

/// A child process and its own children: one process group, killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    name: String,
    process: Process,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    /// Starts a command on these CPUs; its output goes to two files in `folder`.
    ///
    /// # Errors
    /// The program does not exist, or cannot be started.
    pub(crate) fn start(
        node: &Node,
        name: &str,
        command: &Command,
        cpus: &[usize],
        folder: &Path,
    ) -> Result<Self> {
        let (stdout, stderr) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.err")));
        let create = |path: &Path| {
            let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
            anyhow::Ok(Output::File(file))
        };
        let shown = command.get_program().display();
        let mut program = Program::new(command.get_program()).args(command.get_args());
        let variables = command.get_envs();
        program.env =
            variables.filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
        program.directory = command.get_current_dir().map(Path::to_owned);
        program.cpus = cpus.to_vec();
        let program = program.stdin(Input::Null).stdout(create(&stdout)?).stderr(create(&stderr)?);
        let started = node.spawn(program);
        let process = started.with_context(|| format!("cannot start {name} ({shown}); is it installed?"))?;
        Ok(Running { name: name.to_owned(), process, stdout, stderr })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The child's output so far.
    pub(crate) fn stdout(&self) -> Result<String> {
        read_some(&self.stdout)
    }

    /// The last line of the child's standard error, for messages.
    pub(crate) fn last_words(&self) -> String {
        let text = read_some(&self.stderr).unwrap_or_default();
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message").trim().to_owned()
    }

    /// The child's cost, if it has ended.
    pub(crate) fn poll(&self) -> Result<Option<Exit>> {
        self.process.wait_timeout(Duration::ZERO).with_context(|| format!("cannot wait for {}", self.name))
    }

    /// Waits for the child's end.
    ///
    /// # Errors
    /// It took longer than `limit`, or `stop` was set. The child is killed when `self` is dropped.
    pub(crate) fn wait(&self, limit: Duration, stop: &AtomicBool) -> Result<Exit> {
        let began = Instant::now();
        loop {
            if let Some(exit) = self.poll()? {
                return Ok(exit);
            }
            if stop.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            if began.elapsed() > limit {
                bail!("{} was still running after {} s", self.name, limit.as_secs());
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nobody could handle a failure here.
        let _ = self.process.stop(PATIENCE);
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

#[cfg(test)]
mod tests {
    use lab::Lab;

    use super::*;

    fn shell(script: &str) -> (Lab, tempfile::TempDir, Running) {
        let (lab, folder) = (Lab::loopback().unwrap(), tempfile::tempdir().unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let cpu = crate::machine::cpus().unwrap()[0];
        let running = Running::start(lab.client(), "sh", &command, &[cpu], folder.path()).unwrap();
        (lab, folder, running)
    }

    #[test]
    fn a_child_is_accounted_for_and_its_output_kept() {
        let stop = AtomicBool::new(false);
        let (_lab, _folder, child) =
            shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; echo why >&2; exit 3");
        let ended = child.wait(Duration::from_secs(60), &stop).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert!(ended.cpu_user_ns > 1_000_000, "{ended:?}");
        assert!(ended.max_resident_bytes > 100_000, "{ended:?}");
        assert_eq!(child.stdout().unwrap(), "done\n");
        assert_eq!(child.last_words(), "why");
    }

    #[test]
    fn a_child_runs_on_its_cpu_only() {
        let stop = AtomicBool::new(false);
        let (_lab, _folder, child) = shell("grep Cpus_allowed_list /proc/self/status");
        child.wait(Duration::from_secs(60), &stop).unwrap();
        let cpu = crate::machine::cpus().unwrap()[0].to_string();
        assert_eq!(child.stdout().unwrap().split_whitespace().last(), Some(cpu.as_str()));
    }

    #[test]
    fn a_child_that_hangs_is_an_error_and_does_not_survive() {
        let (_lab, _folder, child) = shell("trap '' TERM; while :; do sleep 0.05; done");
        let error = child.wait(Duration::ZERO, &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().contains("was still running"), "{error}");
        assert!(child.wait(Duration::from_secs(60), &AtomicBool::new(true)).is_err());
        let pid = child.pid();
        drop(child);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let cpu = crate::machine::cpus().unwrap()[0];
        let (lab, command) = (Lab::loopback().unwrap(), Command::new("/no/such/program"));
        let error = Running::start(lab.client(), "none", &command, &[cpu], folder.path()).unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}
