//! Installed programs: finding them and their versions.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use minijinja::value::Value;
use model::reader::Table;
use model::{InputError, Variant};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::installed;
use crate::requirements::{Module, Requirements};
use crate::template::{Variables, fill, is_at_least, read_templates};

/// Folders of programs that are not in an ordinary user's PATH.
const MORE_FOLDERS: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin"];
/// How long a version command may take.
const VERSION_LIMIT: Duration = Duration::from_secs(10);
/// How much of a version command's output is read.
const VERSION_BYTES: u64 = 1 << 20;
/// How often a running version command is checked.
const POLL: Duration = Duration::from_millis(2);

/// The description of a program.
#[derive(Clone, Debug)]
pub(crate) struct ProgramSpec {
    /// Templates of the program's name in PATH or of its path; the first that exists is used.
    programs: Vec<String>,
    /// A command that installs it; `None` where it belongs to the tool.
    install: Option<String>,
    /// The command that prints its version.
    version_command: Vec<String>,
    /// The text before the version.
    version_after: String,
}

/// An installed program and the output of its version command.
pub(crate) struct InstalledProgram {
    /// The program's path.
    pub(crate) program: PathBuf,
    /// The version.
    pub(crate) version: String,
    /// The output of the version command.
    pub(crate) build: String,
    /// The variables of the description's templates.
    variables: Variables,
    /// The description's file, for errors.
    file: String,
}

/// What is known about an installed server or client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramInfo {
    /// The program's path.
    pub program: PathBuf,
    /// Its version.
    pub version: String,
    /// Its TLS library; `None` where it is unknown.
    pub tls: Option<String>,
    /// Every variant of the description, and whether this installation supports it.
    pub variants: Vec<(Variant, Support)>,
    /// The module with which a server takes feeds, empty if it needs none, or why it does not take them;
    /// `None` for programs that never take feeds.
    pub(crate) feed: Option<Result<String, String>>,
    /// The output of the version command.
    pub(crate) build: String,
}

/// Whether a variant is supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It is.
    Supported,
    /// It is not, with the reason.
    Unsupported(String),
}

/// What was probed, by the description's folder and the tool. A program does not change while the tool runs.
static PROBED: Mutex<BTreeMap<(String, PathBuf), ProgramInfo>> = Mutex::new(BTreeMap::new());

impl ProgramInfo {
    /// Whether the program supports a variant here.
    pub fn support(&self, variant: Variant) -> Support {
        let known = self.variants.iter().find(|(known, _)| *known == variant);
        known.map_or_else(
            || Support::Unsupported(format!("the description has no variant `{variant}`")),
            |(_, support)| support.clone(),
        )
    }

    /// The result of an earlier probe of the same description, or of this one.
    pub(crate) fn once(
        folder: &str,
        tool: &Path,
        probe: impl FnOnce() -> anyhow::Result<ProgramInfo>,
    ) -> anyhow::Result<ProgramInfo> {
        let key = (folder.to_owned(), tool.to_owned());
        let probed = || PROBED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(info) = probed().get(&key) {
            return Ok(info.clone());
        }
        let info = probe()?;
        probed().insert(key, info.clone());
        Ok(info)
    }
}

impl InstalledProgram {
    /// Whether the program `name` supports a variant with these requirements.
    ///
    /// # Errors
    /// A template of a module's path cannot be filled in.
    pub(crate) fn support(
        &self,
        name: &str,
        variant: Variant,
        requirements: &Requirements,
    ) -> anyhow::Result<(Variant, Support)> {
        let this = format!("{name} {} at {}", self.version, self.program.display());
        let reason = if let Some(since) =
            requirements.since.as_ref().filter(|since| !is_at_least(&self.version, since))
        {
            format!("{this} does not support {variant}; install {since} or newer")
        } else if let Some(text) = requirements.build.as_ref().filter(|text| !self.build.contains(*text)) {
            format!(
                "{this} was built without {variant} (its version output does not contain `{text}`); install a build \
                 with it"
            )
        } else if let Some(module) = &requirements.module
            && let Err(reason) = self.find_module(name, module, variant.name())?
        {
            reason
        } else {
            return Ok((variant, Support::Supported));
        };
        Ok((variant, Support::Unsupported(reason)))
    }

    /// The path of a module that `what` requires, or why the program `name` lacks it.
    ///
    /// # Errors
    /// A template of a path cannot be filled in.
    pub(crate) fn find_module(
        &self,
        name: &str,
        module: &Module,
        what: &str,
    ) -> anyhow::Result<Result<String, String>> {
        let paths = fill(&module.paths, &self.file, &self.version, &self.build, &self.variables)?;
        let first = paths.first().cloned().unwrap_or_default();
        Ok(paths.into_iter().find(|path| Path::new(path).exists()).ok_or_else(|| {
            let (version, program) = (&self.version, self.program.display());
            format!(
                "{name} {version} at {program} has no file {first}, which {what} requires; install it with `{}`",
                module.install
            )
        }))
    }
}

impl ProgramSpec {
    /// Whether it is this tool.
    pub(crate) fn is_self(&self) -> bool {
        self.programs == ["{{self}}"]
    }

    /// Reads the description's root and its `[version]`.
    ///
    /// # Errors
    /// A key is missing or empty, or a template is invalid; with its place.
    pub(crate) fn read(root: &Table<'_>, version: &Table<'_>) -> Result<ProgramSpec, InputError> {
        Ok(ProgramSpec {
            programs: root.required("program", read_templates)?.value,
            install: root.text("install")?.map(|install| install.value),
            version_command: version.required("command", read_templates)?.value,
            version_after: version.required("after", Table::text)?.value,
        })
    }

    /// Finds the program and its version. `tool` is `{{self}}` in templates; `file` is the description's, for
    /// errors.
    ///
    /// # Errors
    /// The program is not installed, with the command that installs it, or prints no version.
    pub(crate) fn find(&self, file: &str, tool: &Path) -> anyhow::Result<InstalledProgram> {
        let mut variables = Variables::from([("self", Value::from(tool.display().to_string()))]);
        let programs = fill(&self.programs, file, "", "", &variables)?;
        let program = programs.iter().find_map(|program| find_program(program)).ok_or_else(|| {
            let advice = self
                .install
                .as_ref()
                .map_or(String::new(), |install| format!("; install it with `{install}`"));
            anyhow!("{} is not installed{advice}", programs.join(" or "))
        })?;
        variables.insert("program", Value::from(program.display().to_string()));
        let command = fill(&self.version_command, file, "", "", &variables)?;
        let build = output_within(&command, VERSION_LIMIT)?;
        let command = command.join(" ");
        let version = version_in(&build, &self.version_after).ok_or_else(|| {
            let start: String = build.chars().take(200).collect();
            let after = &self.version_after;
            anyhow!(
                "`{command}` printed `{start}` and no version after `{after}`; adapt `[version]` in {file}"
            )
        })?;
        variables.insert("root", Value::from(installed::root_of(&program)));
        Ok(InstalledProgram { program, version, build, variables, file: file.to_owned() })
    }
}

pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(is_program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Installed servers take precedence over older ones of the system.
    let folders = installed::programs().into_iter().chain(std::env::split_paths(&path));
    let folders = folders.chain(MORE_FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(is_program)
}

/// The standard output and standard error of a command that must end within `limit`.
pub(crate) fn output_within(command: &[String], limit: Duration) -> anyhow::Result<String> {
    let shown = command.join(" ");
    let (program, args) = command.split_first().context("the command is empty; write a program")?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let readers = [child.stdout.take().map(read_in_thread), child.stderr.take().map(read_in_thread)];
    let deadline = Instant::now() + limit;
    let mut is_late = false;
    while !is_late && !has_ended(&child).with_context(|| format!("cannot wait for `{shown}`"))? {
        is_late = Instant::now() >= deadline;
        std::thread::sleep(POLL);
    }
    kill_group(&child);
    child.wait().with_context(|| format!("cannot wait for `{shown}`"))?;
    if is_late {
        bail!("`{shown}` did not end within {} s", limit.as_secs());
    }
    let texts = readers.into_iter().flatten().filter_map(|reader| reader.join().ok());
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

/// Ends a process that has a group, with its children: they would live on, and they hold pipes open. The PID
/// is its own until `wait`.
pub(crate) fn kill_group(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Whether it has ended; it stays a zombie, so that its PID is not reused.
pub(crate) fn has_ended(child: &Child) -> std::io::Result<bool> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return Ok(true) };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(pid), options)?.is_some())
}

fn read_in_thread(pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // The bytes before an error may contain the version.
        let _ = pipe.take(VERSION_BYTES).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn version_in(text: &str, after: &str) -> Option<String> {
    let (_, rest) = text.split_once(after)?;
    let version: String =
        rest.chars().take_while(|c| !c.is_whitespace() && !matches!(c, ')' | ',')).collect();
    version.starts_with(|c: char| c.is_ascii_digit()).then_some(version)
}

/// A name and its version, such as `OpenSSL 3.6.5`.
pub(crate) fn two_words_after(text: &str, after: &str) -> Option<String> {
    let (_, rest) = text.split_once(after)?;
    let words: Vec<&str> = rest.lines().next()?.split_whitespace().take(2).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_a_name_and_a_version() {
        let said = "built by gcc 16\nbuilt with OpenSSL 3.6.5 29 Sep 2026\nTLS";
        assert_eq!(two_words_after(said, "built with ").as_deref(), Some("OpenSSL 3.6.5"));
        assert_eq!(two_words_after(said, "running on "), None);
    }

    #[test]
    fn versions_are_found_in_what_is_said() {
        assert_eq!(version_in("nginx version: nginx/1.22.1\nbuilt", "nginx/").as_deref(), Some("1.22.1"));
        assert_eq!(version_in("Server (x/2.4.1) y", "x/").as_deref(), Some("2.4.1"));
        assert_eq!(version_in("x/unknown", "x/"), None);
    }

    #[test]
    fn the_children_of_a_version_command_end_with_it() {
        // The child holds the pipes open; the second command does not end.
        for (rest, is_late) in [("", false), ("; wait", true)] {
            let folder = tempfile::tempdir().unwrap();
            let pid_file = folder.path().join("pid");
            let script = format!("sleep 4711 & echo $! >{}{rest}", pid_file.display());
            let command = ["sh", "-c", &script].map(str::to_owned);
            let output = output_within(&command, Duration::from_millis(500));
            assert_eq!(output.is_err(), is_late, "{output:?}");
            let pid: i32 = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
            let status = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let is_gone = || status().is_empty() || status().contains(") Z ");
            let is_gone_soon = (0..500).any(|_| {
                std::thread::sleep(POLL);
                is_gone()
            });
            assert!(is_gone_soon, "{script}: {}", status());
        }
    }

    #[test]
    fn a_silent_command_is_given_up() {
        let command = ["sleep", "60"].map(str::to_owned);
        let error = output_within(&command, Duration::from_millis(20)).unwrap_err().to_string();
        assert!(error.contains("did not end"), "{error}");
    }
}
