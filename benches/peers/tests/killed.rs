//! A harness that is killed leaves no process behind, and the next one removes its folder.
//!
//! A script stands in for `h123`: a server that prints that it listens, and a generator that never ends.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The test waits for events that take milliseconds; after this long it fails.
const LIMIT: Duration = Duration::from_secs(60);

/// A stand-in that writes its process id and its folder, then sleeps.
fn stand_in(folder: &Path) -> PathBuf {
    let (script, notes) = (folder.join("h123"), folder.display());
    let text = format!(
        "#!/bin/sh\necho $$ $PWD > {notes}/$1.new\nmv {notes}/$1.new {notes}/$1\n\
         [ $1 = serve ] && echo 'h3 https://127.0.0.1/'\nexec sleep 600\n"
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    script
}

fn harness(folder: &Path, script: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench-peers"));
    command.args(["--only", "h3", "--peer", "h3-peer", "--pairs", "1", "--out"]).arg(folder);
    command.arg("--h123").arg(script).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(began.elapsed() < LIMIT, "waited for {what} in vain");
        sleep(Duration::from_millis(10));
    }
}

/// The process and the folder that a stand-in wrote; removes the file.
fn written(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let file = folder.join(name);
    let text = wait_for(name, || fs::read_to_string(&file).ok());
    fs::remove_file(file).unwrap();
    let (pid, place) = text.trim().split_once(' ').unwrap();
    (Path::new("/proc").join(pid), place.into())
}

/// A killed process is a zombie until its parent waits for it: it does not run.
fn is_gone(process: &Path) -> bool {
    fs::read_to_string(process.join("stat")).map_or(true, |stat| {
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
    })
}

#[test]
fn nothing_survives_a_killed_harness_and_the_next_one_sweeps() {
    let folder = tempfile::tempdir().unwrap();
    let script = stand_in(folder.path());
    let mut first = harness(folder.path(), &script);
    let (server, place) = written(folder.path(), "serve");
    let (client, _) = written(folder.path(), "load");
    assert!(place.is_dir() && !is_gone(&server) && !is_gone(&client));

    first.kill().unwrap();
    first.wait().unwrap();
    wait_for("the server's end", || is_gone(&server).then_some(()));
    wait_for("the generator's end", || is_gone(&client).then_some(()));
    assert!(place.is_dir(), "{} was not there to be swept", place.display());

    let mut second = harness(folder.path(), &script);
    let (server, new_place) = written(folder.path(), "serve");
    let (client, _) = written(folder.path(), "load");
    assert!(!place.exists(), "{} was left behind", place.display());
    assert!(new_place.is_dir());

    let interrupted = Command::new("kill").arg(second.id().to_string()).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(second.wait().unwrap().code(), Some(130));
    assert!(is_gone(&server) && is_gone(&client));
    assert!(!new_place.exists(), "{} was left behind", new_place.display());
}
