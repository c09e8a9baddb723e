//! Other people's programs: where they are, and which version they say they are.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use minijinja::value::Value;
use model::InputError;
use model::error::Source;
use toml::Spanned;

use crate::description::words;
use crate::servers::installed;
use crate::template::{Variables, fill};

/// Where programs are that an ordinary user's PATH lacks.
const MORE_FOLDERS: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin"];
/// A version is said within this time.
const VERSION_LIMIT: Duration = Duration::from_secs(10);
/// No version command says more.
const VERSION_BYTES: u64 = 1 << 20;
/// How often a running version command is looked at.
const POLL: Duration = Duration::from_millis(2);

/// What a description says of a program.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Where it may be, as templates: names looked up in PATH, or paths; the first that exists is taken.
    programs: Vec<String>,
    /// One command for people that gets it; `None` where it comes with the tool.
    install: Option<String>,
    /// What makes it say its version.
    version_command: Vec<String>,
    /// What stands before the version.
    version_after: String,
}

/// A program that is here.
pub(crate) struct Asked {
    /// Where.
    pub(crate) program: PathBuf,
    /// The command that made it say its version, for people.
    pub(crate) command: String,
    /// The version.
    pub(crate) version: String,
    /// All that this command said.
    pub(crate) said: String,
}

impl Wanted {
    /// From a description as written.
    ///
    /// # Errors
    /// The place of an empty list or text, or of a template that cannot be read.
    pub(crate) fn read(
        programs: &Spanned<Vec<Spanned<String>>>,
        install: Option<String>,
        version_command: &Spanned<Vec<Spanned<String>>>,
        version_after: Spanned<String>,
        source: Source<'_>,
    ) -> Result<Wanted, InputError> {
        if version_after.get_ref().is_empty() {
            let problem = "found an empty text, expected what stands before the version";
            return Err(source.error(version_after.span(), problem));
        }
        Ok(Wanted {
            programs: words(programs, source, "a program")?,
            install,
            version_command: words(version_command, source, "a command")?,
            version_after: version_after.into_inner(),
        })
    }

    /// Looks for the program and asks its version. `tool` is what `{{self}}` means, `file` the description's, for errors.
    ///
    /// # Errors
    /// It is not installed, with what would install it, or it says no version.
    pub(crate) fn ask(&self, file: &str, tool: &Path) -> anyhow::Result<Asked> {
        let mut variables = Variables::from([("self", Value::from(tool.display().to_string()))]);
        let programs = fill(&self.programs, file, "", "", &variables)?;
        let program = programs.iter().find_map(|program| find_program(program)).ok_or_else(|| {
            let advice = self.install.as_ref().map_or(String::new(), |install| format!(": try `{install}`"));
            anyhow!("found none of {} on this machine{advice}", programs.join(", "))
        })?;
        variables.insert("program", Value::from(program.display().to_string()));
        let command = fill(&self.version_command, file, "", "", &variables)?;
        let said = output_within(&command, VERSION_LIMIT)?;
        let command = command.join(" ");
        let version = version_in(&said, &self.version_after).ok_or_else(|| {
            let start: String = said.chars().take(200).collect();
            anyhow!("`{command}` said `{start}`, expected a version after `{}`", self.version_after)
        })?;
        Ok(Asked { program, command, version, said })
    }
}

fn find_program(name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(is_program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Who had servers installed wants those, not older ones of the system.
    let folders = installed::programs().into_iter().chain(std::env::split_paths(&path));
    let folders = folders.chain(MORE_FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(is_program)
}

/// All that a command says on standard output and standard error, which must not take longer.
fn output_within(command: &[String], limit: Duration) -> anyhow::Result<String> {
    let shown = command.join(" ");
    let (program, args) = command.split_first().context("found an empty command")?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let readers = [child.stdout.take().map(read_in_thread), child.stderr.take().map(read_in_thread)];
    let deadline = Instant::now() + limit;
    while child.try_wait().with_context(|| format!("cannot wait for `{shown}`"))?.is_none() {
        if Instant::now() >= deadline {
            // It may end at this very moment; either way it is gone afterwards.
            let _ = child.kill();
            let _ = child.wait();
            bail!("`{shown}` did not end within {} s", limit.as_secs());
        }
        std::thread::sleep(POLL);
    }
    let texts = readers.into_iter().flatten().filter_map(|reader| reader.join().ok());
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

fn read_in_thread(pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error still may hold the version.
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
    fn a_silent_command_is_given_up() {
        let command = ["sleep", "60"].map(str::to_owned);
        let error = output_within(&command, Duration::from_millis(20)).unwrap_err().to_string();
        assert!(error.contains("did not end"), "{error}");
    }
}
