//! As an ordinary user: emulated in a user namespace, and reported as invalid where that is forbidden.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::tool::{Ended, H123, cell, check, folder, machine, repository, summary};

/// The user `nobody` of every Linux.
const NOBODY: &str = "65534";

/// Calls the tool as an ordinary user; if the tests already run as one, as that one.
pub(crate) fn as_user(args: &[&str], directory: &Path) -> Ended {
    Ended::of(user_command().args(args).current_dir(directory).output().unwrap())
}

/// The tool where an ordinary user can start it: a copy if only root can enter the repository's folder.
static TOOL_FOR_USERS: LazyLock<PathBuf> = LazyLock::new(|| {
    let is_open = |folder: &Path| folder.metadata().is_ok_and(|metadata| metadata.mode() & 0o001 != 0);
    if Path::new(H123).ancestors().skip(1).all(is_open) {
        return H123.into();
    }
    let folder = std::env::temp_dir().join("h123-tests");
    let copy = folder.join("h123");
    std::fs::create_dir_all(&folder).unwrap();
    // A running program cannot be overwritten, but removed.
    let _ = std::fs::remove_file(&copy);
    std::fs::copy(H123, &copy).unwrap();
    copy
});

/// The tool as a command of an ordinary user.
pub(crate) fn user_command() -> Command {
    if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]).arg(&*TOOL_FOR_USERS);
        command
    } else {
        Command::new(H123)
    }
}

/// Whether this machine grants an ordinary user the emulator's priority, by `h123 doctor`'s check.
pub(crate) fn user_may_be_realtime() -> bool {
    let doctor = Ended::of(user_command().arg("doctor").current_dir("/").output().unwrap());
    let line = doctor.stdout.lines().find(|line| line.contains("real-time priority")).unwrap();
    assert!(line.starts_with(['✓', '✗']), "{line}");
    line.starts_with('✓')
}

#[test]
fn an_ordinary_user_gets_valid_cells_on_north_carolina() {
    let _machine = machine();
    // A disturbed calibration makes a cell invalid, as it should: one undisturbed study of three shows what
    // is meant.
    let found: Vec<String> = (0..3).map_while(|_| study_as_user().err()).collect();
    assert!(found.len() < 3, "{}", found.join("\n"));
}

/// A short study on north-carolina as an ordinary user, and the caveats of its cells.
fn study_as_user() -> Result<(), String> {
    let folder = folder();
    let out = folder.path().join("out");
    let args = "run quick --runs 2 --network north-carolina --workload large --variant h1s --variant h2 --variant h3 --out";
    let args: Vec<&str> = args.split(' ').chain([out.to_str().unwrap()]).collect();
    // The repository may be closed to this user; the binary carries its data files.
    let ended = as_user(&args, folder.path());
    ended.expect_measured();
    let may = user_may_be_realtime();
    let environment = std::fs::read_to_string(out.join("environment.json")).unwrap();
    let environment: serde_json::Value = serde_json::from_str(&environment).unwrap();
    let emulation = environment["notes"]["emulation"].as_str().unwrap();
    assert!(emulation.starts_with("packets over veth"), "{emulation}");
    assert_eq!(emulation.contains("; without real-time priority: "), !may, "{emulation}");
    let times = ended.stderr.matches("the emulator runs without real-time priority: ").count();
    assert_eq!(times, usize::from(!may), "{}", ended.stderr);
    let summary = summary(&out);
    for variant in ["h1s", "h2", "h3"] {
        let cell = cell(&summary, &[variant]);
        assert_eq!(cell["runs_ok"], 2);
        assert_eq!(check(cell, "emulation")["result"], "pass");
        let is_sound = matches!(cell["status"].as_str(), Some("valid" | "caveat"));
        if !is_sound || check(cell, "calibration")["result"] != "pass" || ended.code != 0 {
            return Err(format!("exit status {}: {cell:#}", ended.code));
        }
    }
    Ok(())
}

/// A user namespace in which no further one may be made and from which every capability is gone.
const FORBID: &str = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all \
                      --no-new-privs \"$@\"";

#[test]
fn without_any_namespace_the_study_runs_over_loopback_and_every_cell_is_invalid() {
    let _machine = machine();
    let folder = folder();
    let out = folder.path().join("out");
    let forbidden = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", FORBID, "sh", H123]).args(args);
        Ended::of(command.current_dir(repository()).output().unwrap())
    };
    let ended = forbidden(&[
        "run",
        "quick",
        "--runs",
        "2",
        "--network",
        "lan",
        "--variant",
        "h1s",
        "--variant",
        "h3",
        "--out",
        out.to_str().unwrap(),
    ])
    .expect(3);
    assert!(ended.stderr.contains("this machine cannot emulate networks"), "{}", ended.stderr);
    let summary = summary(&out);
    for cell in summary["cells"].as_array().unwrap() {
        assert_eq!(cell["runs_ok"], 2, "{cell:#}");
        assert_eq!(cell["status"], "invalid", "{cell:#}");
        let emulation = check(cell, "emulation");
        assert_eq!(emulation["result"], "invalid");
        assert!(emulation.to_string().contains("not emulated"), "{emulation}");
    }
    for comparison in summary["comparisons"].as_array().unwrap() {
        assert_eq!(comparison["verdict"], "invalid");
    }
    let doctor = forbidden(&["doctor"]).expect(3);
    // It is root of a user namespace, as in a container.
    assert!(doctor.stdout.contains("--privileged"), "{}", doctor.stdout);
}

#[test]
fn doctor_reports_what_this_machine_supports() {
    let doctor =
        Ended::of(Command::new(H123).arg("doctor").current_dir(repository()).output().unwrap()).expect(0);
    for text in ["namespaces", "packet sockets", "real-time priority", "net.core.rmem_max", "origin", "nginx"]
    {
        assert!(doctor.stdout.contains(text), "{text} in:\n{}", doctor.stdout);
    }
}
