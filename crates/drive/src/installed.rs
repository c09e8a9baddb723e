//! Servers in a folder of h123: newer than the system's, so that real servers with HTTP/3 are available.
//!
//! apt downloads the packages of a Debian suite, with separate lists and state, and dpkg-deb unpacks them.
//! This needs no root and changes no file of the system. A small script in `bin/` runs a program with the
//! dynamic loader and libraries of its packages, so it runs on any distribution with apt.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The environment variable with the folder of installed servers.
pub const FOLDER_VARIABLE: &str = "H123_SERVERS";
/// The suite with the newest packages.
pub const SUITE: &str = "sid";

const PACKAGES: &[&str] = &[
    "apache2-bin",
    "apache2-utils",
    "caddy",
    "curl",
    "haproxy",
    "libnginx-mod-rtmp",
    "lighttpd",
    "lighttpd-mod-openssl",
    "nghttp2-client",
    "nghttp2-proxy",
    "nghttp2-server",
    "nginx",
    "siege",
    "wrk",
];
/// The programs with a start script.
const PROGRAMS: &[&str] = &[
    "ab", "apache2", "caddy", "curl", "h2load", "haproxy", "lighttpd", "nghttpd", "nghttpx", "nginx",
    "siege", "wrk",
];
/// Folders that no program needs.
const DOCUMENTS: &[&str] = &["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info"];

/// An installation of servers.
#[derive(Clone, Debug)]
pub struct Installation {
    /// The folder, which is replaced as a whole.
    pub folder: PathBuf,
    /// The mirror's URL; the machine's mirror where `None`.
    pub mirror: Option<String>,
}

/// The folder of installed servers, whether or not it exists: `$H123_SERVERS`, or `h123/servers` in the
/// user's cache. `None` where the user has no home.
pub fn folder() -> Option<PathBuf> {
    variable(FOLDER_VARIABLE).or_else(|| Some(cache()?.join("h123/servers")))
}

/// The user's cache: `$XDG_CACHE_HOME` or `~/.cache`. `None` where the user has no home.
pub(crate) fn cache() -> Option<PathBuf> {
    variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))
}

pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The folder of the installed programs; `None` where there is none.
pub fn programs() -> Option<PathBuf> {
    Some(folder()?.join("bin")).filter(|bin| bin.is_dir())
}

/// The root folder of an installed program's files; empty for a program of the system.
pub(crate) fn root_of(program: &Path) -> String {
    let root = programs()
        .filter(|bin| program.parent() == Some(bin))
        .and_then(|bin| Some(bin.parent()?.join("root")));
    root.map_or_else(String::new, |root| root.display().to_string())
}

impl Installation {
    /// Downloads and unpacks the servers and reports its progress; takes about a minute and 300 MB. An
    /// earlier installation stays until the new one is complete.
    ///
    /// # Errors
    /// apt, a mirror, a package or disk space is missing.
    pub fn run(&self, say: &dyn Fn(&str)) -> Result<()> {
        for tool in ["apt-get", "dpkg-deb"] {
            require(tool)?;
        }
        let parent = self
            .folder
            .parent()
            .context("the installation has no parent folder; use a folder such as ~/.cache/h123/servers")?;
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let work = tempfile::Builder::new()
            .prefix(".servers-")
            .tempdir_in(parent)
            .with_context(|| format!("cannot write in {}", parent.display()))?;
        let apt = Apt::new(work.path(), self.mirror.as_deref())?;
        say(&format!("reading the package lists of {SUITE}"));
        apt.call(&["update"])?;
        say("downloading the servers and their libraries");
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
        fs::rename(&new, &self.folder).with_context(|| format!("cannot create {}", self.folder.display()))
    }
}

fn require(tool: &str) -> Result<()> {
    let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        bail!(
            "`{tool}` is not installed (Debian and Ubuntu have it); install servers by hand, and h123 finds them in PATH"
        );
    }
    Ok(())
}

/// apt with separate lists, cache and state.
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
            // apt's sandbox user may lack access to this folder.
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

/// The standard output of a command.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let ended = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{program}`"))?;
    if !ended.status.success() {
        let words = String::from_utf8_lossy(&ended.stderr);
        bail!("`{program}` failed ({}): {}", ended.status, words.trim());
    }
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

/// A source of packages.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    mirror: String,
    /// The keyring; empty for the keys that apt trusts.
    signed_by: String,
}

/// Debian's keyring, from the package of the same name.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

impl Source {
    fn at(mirror: &str) -> Source {
        let signed_by = if Path::new(KEYS).exists() { KEYS } else { "" };
        Source { mirror: mirror.to_owned(), signed_by: signed_by.to_owned() }
    }

    /// The first Debian mirror in the machine's apt configuration.
    fn of_this_machine() -> Result<Source> {
        let format = [
            "indextargets",
            "--format",
            "$(ORIGIN)|$(LABEL)|$(REPO_URI)|$(SIGNED_BY)",
            "Created-By: Packages",
        ];
        let targets = output(Command::new("apt-get").args(format))?;
        Source::in_targets(&targets).with_context(|| {
            "the machine's apt configuration has no Debian mirror (or `apt-get update` never ran); pass one with --mirror \
             URL"
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
    fs::create_dir_all(root).with_context(|| format!("cannot create {}", root.display()))?;
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

/// Writes the start scripts for the programs, with the paths after `new` is renamed to `place`.
fn write_programs(new: &Path, place: &Path) -> Result<()> {
    let place = std::path::absolute(place).context("the working directory is not known")?;
    let libraries = libraries(&new.join("root"))?;
    let bin = new.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("cannot create {}", bin.display()))?;
    for program in PROGRAMS {
        let found = ["usr/bin", "usr/sbin"].map(|folder| format!("{folder}/{program}"));
        let Some(found) = found.into_iter().find(|path| new.join("root").join(path).is_file()) else {
            let packages = PACKAGES.join(", ");
            bail!("no package of {SUITE} contains `{program}` ({packages}); try another --mirror");
        };
        let script = script(&place.join("root"), &libraries, &found, program);
        let path = bin.join(program);
        fs::write(&path, script).with_context(|| format!("cannot write {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// The paths of the loader and of the library folder (`usr/lib/x86_64-linux-gnu`) below a root folder.
fn libraries(root: &Path) -> Result<(String, String)> {
    let entries = fs::read_dir(root.join("usr/lib")).context("the packages contain no libraries")?;
    for folder in entries.flatten().filter(|entry| entry.path().is_dir()) {
        let folder = folder.file_name().to_string_lossy().into_owned();
        let inside = fs::read_dir(root.join("usr/lib").join(&folder)).into_iter().flatten().flatten();
        let mut names = inside.map(|entry| entry.file_name().to_string_lossy().into_owned());
        if let Some(loader) = names.find(|name| name.starts_with("ld-linux") && name.contains(".so")) {
            return Ok((format!("usr/lib/{folder}/{loader}"), format!("usr/lib/{folder}")));
        }
    }
    bail!(
        "the packages of {SUITE} contain no dynamic loader (usr/lib/*/ld-linux*.so.*); try another --mirror"
    )
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
        assert!(error.contains("contains `ab`"), "{error}");
    }
}
