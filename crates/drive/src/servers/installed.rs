//! Servers in a folder of h123's own: newer ones than the system's, so that HTTP/3 can be had from real servers.
//!
//! The packages of a Debian suite are fetched by apt, with lists and state of their own, and unpacked side by side. No
//! root is needed and none of the system's files is touched. A program there is run by the dynamic loader and the
//! libraries that came with it, through a small script in `bin/`, so it runs on any distribution that has apt.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Where servers are installed, instead of the user's cache.
pub const FOLDER_VARIABLE: &str = "H123_SERVERS";
/// The suite that has the newest.
pub const SUITE: &str = "sid";

const PACKAGES: &[&str] = &[
    "apache2-bin",
    "apache2-utils",
    "caddy",
    "curl",
    "haproxy",
    "lighttpd",
    "lighttpd-mod-openssl",
    "nghttp2-client",
    "nghttp2-proxy",
    "nghttp2-server",
    "nginx",
    "siege",
    "wrk",
];
/// The programs that can be started from the folder.
const PROGRAMS: &[&str] = &[
    "ab", "apache2", "caddy", "curl", "h2load", "haproxy", "lighttpd", "nghttpd", "nghttpx", "nginx",
    "siege", "wrk",
];
/// What no program needs to run.
const DOCUMENTS: &[&str] = &["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info"];

/// What to install, and where.
#[derive(Clone, Debug)]
pub struct Installation {
    /// The folder; it is replaced as a whole.
    pub folder: PathBuf,
    /// The mirror's address; the machine's own where `None`.
    pub mirror: Option<String>,
}

/// The folder of installed servers, whether or not it exists: `$H123_SERVERS`, or `h123/servers` in the user's cache.
/// `None` where the user has no home.
pub fn folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable(FOLDER_VARIABLE).or_else(|| {
        let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))?;
        Some(cache.join("h123/servers"))
    })
}

/// Where the installed programs are; `None` where none are.
pub fn programs() -> Option<PathBuf> {
    Some(folder()?.join("bin")).filter(|bin| bin.is_dir())
}

/// The root folder that an installed program's files are in; empty for a program of the system.
pub(crate) fn root_of(program: &Path) -> String {
    let root = programs()
        .filter(|bin| program.parent() == Some(bin))
        .and_then(|bin| Some(bin.parent()?.join("root")));
    root.map_or_else(String::new, |root| root.display().to_string())
}

impl Installation {
    /// Fetches and unpacks the servers, and says what it does; takes about a minute and 300 MB. What was installed before
    /// stays until all is there.
    ///
    /// # Errors
    /// There is no apt, no mirror, no space, or a package cannot be had.
    pub fn run(&self, say: &dyn Fn(&str)) -> Result<()> {
        for tool in ["apt-get", "dpkg-deb"] {
            require(tool)?;
        }
        let parent =
            self.folder.parent().context("found no folder, expected one such as ~/.cache/h123/servers")?;
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        let work = tempfile::Builder::new()
            .prefix(".servers-")
            .tempdir_in(parent)
            .with_context(|| format!("cannot write in {}", parent.display()))?;
        let apt = Apt::new(work.path(), self.mirror.as_deref())?;
        say(&format!("reading what {SUITE} has"));
        apt.call(&["update"])?;
        say("fetching the servers and the libraries that they need");
        let install = ["install", "--download-only", "--no-install-recommends", "--yes"];
        apt.call(&[install.as_slice(), PACKAGES].concat())?;
        say("unpacking");
        let new = work.path().join("new");
        unpack(&work.path().join("cache/archives"), &new.join("root"))?;
        write_programs(&new, &self.folder)?;
        if self.folder.exists() {
            let old = work.path().join("old");
            fs::rename(&self.folder, &old)
                .with_context(|| format!("cannot replace {}", self.folder.display()))?;
        }
        fs::rename(&new, &self.folder).with_context(|| format!("cannot make {}", self.folder.display()))
    }
}

fn require(tool: &str) -> Result<()> {
    let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        bail!(
            "found no `{tool}`, expected it, as Debian and Ubuntu have it: install servers by hand, and h123 finds them in PATH"
        );
    }
    Ok(())
}

/// apt with lists, cache and state of its own.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn new(work: &Path, mirror: Option<&str>) -> Result<Apt> {
        let source = match mirror {
            Some(mirror) => Source::at(mirror),
            None => Source::of_this_machine()?,
        };
        for folder in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(work.join(folder)).context("cannot make apt's folders")?;
        }
        let (list, status) = (work.join("sources.list"), work.join("status"));
        fs::write(&status, "").context("cannot write apt's state")?;
        fs::write(&list, source.line()).context("cannot write apt's sources")?;
        let set = |key: &str, value: &Path| format!("-o{key}={}", value.display());
        let options = vec![
            set("Dir::State", &work.join("state")),
            set("Dir::State::status", &status),
            set("Dir::Cache", &work.join("cache")),
            set("Dir::Etc::sourcelist", &list),
            set("Dir::Etc::sourceparts", Path::new("/dev/null")),
            // The user that apt would fetch as may not be allowed in here.
            "-oAPT::Sandbox::User=root".to_owned(),
            "-oAcquire::Languages=none".to_owned(),
            "-qq".to_owned(),
        ];
        Ok(Apt { options })
    }

    fn call(&self, words: &[&str]) -> Result<()> {
        let mut command = Command::new("apt-get");
        command.args(&self.options).args(words);
        output(command.env("DEBIAN_FRONTEND", "noninteractive")).map(drop)
    }
}

/// What a command says on standard output.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let ended = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{program}`"))?;
    if !ended.status.success() {
        let words = String::from_utf8_lossy(&ended.stderr);
        bail!("`{program}` failed ({}): {}", ended.status, words.trim());
    }
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

/// Where packages come from.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    mirror: String,
    /// Who signs; empty where apt is to use the keys that it trusts anyway.
    signed_by: String,
}

/// The keys of Debian, by the package of the same name.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

impl Source {
    fn at(mirror: &str) -> Source {
        let signed_by = if Path::new(KEYS).exists() { KEYS } else { "" };
        Source { mirror: mirror.to_owned(), signed_by: signed_by.to_owned() }
    }

    /// The first of Debian's mirrors in the machine's own apt configuration.
    fn of_this_machine() -> Result<Source> {
        let format = [
            "indextargets",
            "--format",
            "$(ORIGIN)|$(LABEL)|$(REPO_URI)|$(SIGNED_BY)",
            "Created-By: Packages",
        ];
        let targets = output(Command::new("apt-get").args(format))?;
        Source::in_targets(&targets).with_context(|| {
            "found no mirror of Debian in the machine's apt configuration (or `apt-get update` was never called), expected one: \
             give it with --mirror URL"
        })
    }

    fn in_targets(targets: &str) -> Option<Source> {
        targets.lines().find_map(|line| {
            let mut parts = line.split('|');
            let (origin, label, mirror, signed_by) =
                (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
            (origin == "Debian" && label == "Debian" && !mirror.is_empty())
                .then(|| Source { mirror: mirror.to_owned(), signed_by: signed_by.to_owned() })
        })
    }

    /// A line of sources.list(5).
    fn line(&self) -> String {
        let signed = if self.signed_by.starts_with('/') {
            format!("[signed-by={}] ", self.signed_by)
        } else {
            String::new()
        };
        format!("deb {signed}{} {SUITE} main\n", self.mirror)
    }
}

fn unpack(archives: &Path, root: &Path) -> Result<()> {
    fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
    let entries = fs::read_dir(archives).with_context(|| format!("cannot read {}", archives.display()))?;
    for archive in entries.flatten().map(|entry| entry.path()) {
        if archive.extension().is_some_and(|extension| extension == "deb") {
            output(Command::new("dpkg-deb").arg("--extract").arg(&archive).arg(root))?;
            fs::remove_file(&archive).with_context(|| format!("cannot remove {}", archive.display()))?;
        }
    }
    for folder in DOCUMENTS.iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir()) {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// Writes the scripts that start the programs, as they will be once `new` is called `place`.
fn write_programs(new: &Path, place: &Path) -> Result<()> {
    let place = std::path::absolute(place).context("the working directory is not known")?;
    let libraries = libraries(&new.join("root"))?;
    let bin = new.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
    for program in PROGRAMS {
        let found = ["usr/bin", "usr/sbin"].map(|folder| format!("{folder}/{program}"));
        let Some(found) = found.into_iter().find(|path| new.join("root").join(path).is_file()) else {
            bail!(
                "the packages of {SUITE} brought no `{program}`, expected it from one of {}",
                PACKAGES.join(", ")
            );
        };
        let script = script(&place.join("root"), &libraries, &found, program);
        let path = bin.join(program);
        fs::write(&path, script).with_context(|| format!("cannot write {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// The loader and the folder of libraries, within a root folder, such as `usr/lib/x86_64-linux-gnu`.
fn libraries(root: &Path) -> Result<(String, String)> {
    let entries = fs::read_dir(root.join("usr/lib")).context("the packages brought no libraries")?;
    for folder in entries.flatten().filter(|entry| entry.path().is_dir()) {
        let folder = folder.file_name().to_string_lossy().into_owned();
        let inside = fs::read_dir(root.join("usr/lib").join(&folder)).into_iter().flatten().flatten();
        let mut names = inside.map(|entry| entry.file_name().to_string_lossy().into_owned());
        if let Some(loader) = names.find(|name| name.starts_with("ld-linux") && name.contains(".so")) {
            return Ok((format!("usr/lib/{folder}/{loader}"), format!("usr/lib/{folder}")));
        }
    }
    bail!("the packages of {SUITE} brought no dynamic loader, expected usr/lib/*/ld-linux*.so.*")
}

fn script(root: &Path, (loader, libraries): &(String, String), program: &str, name: &str) -> String {
    let quoted = |path: &str| format!("'{}'", root.join(path).display().to_string().replace('\'', "'\\''"));
    format!(
        "#!/bin/sh\n# Written by `h123 servers install`.\nexec {} --argv0 {name} --library-path {} {} \"$@\"\n",
        quoted(loader),
        quoted(libraries),
        quoted(program)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_machines_own_but_not_its_security_updates() {
        let targets = "Other|Other|http://other.test/|/k\nDebian|Debian-Security|http://security.test/|/k\n\
                       Debian|Debian|http://mirror.test/debian/|/usr/share/keyrings/x.gpg\n";
        let source = Source::in_targets(targets).unwrap();
        assert_eq!(
            source.line(),
            "deb [signed-by=/usr/share/keyrings/x.gpg] http://mirror.test/debian/ sid main\n"
        );
        assert_eq!(Source::in_targets("Ubuntu|Ubuntu|http://mirror.test/ubuntu/|\n"), None);
        let bare = Source { mirror: "http://mirror.test/".into(), signed_by: String::new() };
        assert_eq!(bare.line(), "deb http://mirror.test/ sid main\n");
    }

    #[test]
    fn a_program_is_started_by_its_own_loader() {
        let libraries = ("usr/lib/x/ld-linux.so.2".to_owned(), "usr/lib/x".to_owned());
        let text = script(Path::new("/it's/root"), &libraries, "usr/sbin/nginx", "nginx");
        let expected = "exec '/it'\\''s/root/usr/lib/x/ld-linux.so.2' --argv0 nginx --library-path \
                        '/it'\\''s/root/usr/lib/x' '/it'\\''s/root/usr/sbin/nginx' \"$@\"\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn packages_without_a_program_are_an_error_and_leave_nothing() {
        let work = tempfile::tempdir().unwrap();
        let libraries = work.path().join("root/usr/lib/x");
        fs::create_dir_all(&libraries).unwrap();
        assert!(
            super::libraries(&work.path().join("root")).unwrap_err().to_string().contains("dynamic loader")
        );
        fs::write(libraries.join("ld-linux.so.2"), "").unwrap();
        let error = write_programs(work.path(), Path::new("/place")).unwrap_err().to_string();
        assert!(error.contains("brought no `ab`"), "{error}");
    }
}
