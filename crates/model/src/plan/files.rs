//! The files that servers of files have to have, and the requests that servers cannot serve.

use std::collections::{BTreeMap, BTreeSet};

use super::Plan;
use crate::media::{HdsModel, Media, MediaSource};
use crate::origin_path::OriginPath;
use crate::player::Player;
use crate::tunable::{Contents, ServerFacts};
use crate::units::format_bytes;
use crate::url_pattern::{Pattern, every_path as every_path_of};
use crate::workload::{Workload, bytes_of_path};

/// Servers of files get no longer bodies than this: each is a file.
const MOST_FILE_BYTES: u64 = 64_000_000;
/// A study has at most this many files for its loops: they are written before the first run.
const MOST_FILES: u64 = 20_000;
/// The titles of libraries have at most this many files: each is a hard link.
const MOST_LINKS: u64 = 500_000;
/// More paths are not looked up.
const MOST_KNOWN: u64 = 50_000;
/// The same as [`MOST_FILES`], in bytes.
const MOST_BYTES: u64 = 4_000_000_000;

impl Plan {
    /// The segments of all videos, one of each representation, and the bodies that loops request by their
    /// lengths (`/bytes/1000`), by their paths and lengths: what servers of files have to have.
    pub fn segments(&self) -> BTreeMap<String, u64> {
        let loops = self.workloads.iter().filter_map(|named| named.workload.as_loop());
        let of_loop = |path: String| {
            let bytes = bytes_of_path(&path).filter(|bytes| *bytes <= MOST_FILE_BYTES)?;
            Some((path, bytes))
        };
        let bodies = loops.flat_map(|load| &load.paths).flat_map(|path| every_path(path).unwrap_or_default());
        let players = self.workloads.iter().filter_map(|named| named.workload.player());
        // Segments with other paths belong to media, which have their own files.
        let of_player = |player: &'_ Player| {
            let resources = player.resources().into_iter();
            resources.filter_map(|resource| Some((bytes_of_path(&resource.path)?, resource.path)))
        };
        let segments = players.flat_map(of_player).map(|(bytes, path)| (path, bytes));
        segments.chain(bodies.filter_map(of_loop)).collect()
    }

    /// The lengths of the bodies that paths stand for: those of `/bytes/N` and of the study's media. Others
    /// are omitted, also all paths if they are more than 50 000 or stand for different numbers of paths.
    pub fn known_lengths(&self, paths: &[String]) -> Vec<u64> {
        let all = every_path_of(paths, MOST_KNOWN).unwrap_or_default();
        let media: Vec<_> = self.media.iter().map(|media| (media, media.presentation.files())).collect();
        let length = |path: &String| {
            let of_media = |(media, files): &(&Media, BTreeMap<&str, u64>)| {
                files.get(media.without_title(path)?.as_ref()).copied()
            };
            bytes_of_path(path).or_else(|| media.iter().find_map(of_media))
        };
        all.iter().filter_map(length).collect()
    }

    /// Checks that the servers can serve what the study's loops request of them.
    ///
    /// # Errors
    /// The first path that a server lacks, or serves with another method only; or more files than a study may
    /// have.
    pub(crate) fn check_requests(&self, contents: impl Fn(&str) -> Contents) -> Result<(), String> {
        let pairs = self.loads_of_servers();
        let pages = self.pages();
        let of_pages =
            pages.iter().flat_map(|page| &page.resources).map(|resource| without_query(&resource.path));
        let manifests: Vec<String> = self.media.iter().flat_map(Media::manifests).collect();
        let of_media = self.media.iter().flat_map(|media| media.files().into_keys());
        let of_folders = self.media.iter().filter_map(|media| match &media.source {
            MediaSource::Folder(of) => Some(of.files.keys().map(String::as_str)),
            MediaSource::Modelled(_) | MediaSource::Feed(_) | MediaSource::Site(_) => None,
        });
        let of_media = of_media.chain(of_folders.flatten());
        let known: BTreeSet<&str> =
            of_pages.chain(of_media).chain(manifests.iter().map(String::as_str)).collect();
        let known = KnownPaths { known, media: &self.media };
        let mut has_files = false;
        for (server, workload) in &pairs {
            let named = &self.workloads[*workload];
            let (Some(load), contents) = (named.workload.as_loop(), contents(server)) else { continue };
            has_files |= contents == Contents::Files;
            for (index, path) in load.paths.iter().enumerate() {
                let method = named.options.requests.method_of(index);
                check_path(path, method, contents, &known).map_err(|problem| {
                    format!("workload `{}`: the server `{server}` {problem}", named.name)
                })?;
            }
        }
        if has_files { self.check_size() } else { Ok(()) }
    }

    /// Checks that servers have the live streams that are played or requested there: the origin modelled
    /// ones, servers that take feeds those of folders.
    ///
    /// # Errors
    /// The first live stream that a server cannot have.
    pub(crate) fn check_live(&self, facts: impl Fn(&str) -> Option<ServerFacts>) -> Result<(), String> {
        for (server, workload) in self.loads_of_servers() {
            let Some(facts) = facts(server) else { continue };
            for media in self.live_media_of(&self.workloads[workload].workload) {
                let name = &media.name;
                if media.feed().is_some() && !facts.takes_feeds {
                    return Err(format!(
                        "the server `{server}` takes no feeds, so that it cannot serve the live media `{name}`; use one \
                         that does, such as `nginx`"
                    ));
                }
                if media.feed().is_none() && facts.contents == Contents::Files {
                    return Err(format!(
                        "servers of files cannot serve the live media `{name}`; use the server `origin`, or media with \
                         a `folder`"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The servers that have a content, each with the workloads that are for it.
    fn loads_of_servers(&self) -> BTreeSet<(&str, usize)> {
        let started = self.cells.iter().filter(|cell| cell.chain.remote.is_none());
        started.map(|cell| (cell.chain.content_server().0, cell.group.workload)).collect()
    }

    /// The live streams that a workload plays or requests.
    fn live_media_of<'a>(&'a self, workload: &'a Workload) -> impl Iterator<Item = &'a Media> {
        let played = workload.player().and_then(|player| player.live.as_ref()).map(|live| &live.manifest);
        let requested = workload.as_loop().map_or(&[][..], |load| &load.paths);
        let paths = requested.iter().chain(played);
        let names: BTreeSet<&str> = paths.filter_map(|path| Media::name_in(path)).collect();
        let live = self.media.iter().filter(|media| media.live_window_ns.is_some());
        live.filter(move |media| names.contains(media.name.as_str()))
    }

    fn check_size(&self) -> Result<(), String> {
        let files = self.segments();
        let links = |media: &Media| media.files().len() as u64 * u64::from(media.titles);
        let links = self.media.iter().map(links).fold(0, u64::saturating_add);
        if links > MOST_LINKS {
            return Err(format!(
                "the titles of the study's media have {links} files; use fewer titles or segments, at most {MOST_LINKS}"
            ));
        }
        let modelled = self.media.iter().filter(|media| matches!(media.source, MediaSource::Modelled(_)));
        let of_media = modelled.flat_map(|media| media.presentation.files().into_values());
        let (count, bytes) = files
            .into_values()
            .chain(of_media)
            .fold((0_u64, 0_u64), |(count, sum), bytes| (count + 1, sum.saturating_add(bytes)));
        if count <= MOST_FILES && bytes <= MOST_BYTES {
            return Ok(());
        }
        let size = |bytes| format_bytes(crate::number::float(bytes));
        Err(format!(
            "servers of files need {count} files of {} for the study's loops and media; use at most {MOST_FILES} of {}, or the \
             server `origin`",
            size(bytes),
            size(MOST_BYTES)
        ))
    }
}

/// The paths of the study's pages and media.
struct KnownPaths<'a> {
    known: BTreeSet<&'a str>,
    media: &'a [Media],
}

impl KnownPaths<'_> {
    /// Whether servers have this path.
    fn contains(&self, path: &str) -> bool {
        self.known.contains(path) || self.media.iter().any(|media| self.is_of(media, path))
    }

    /// Whether it is a path of media, of one of its titles, or has the form of a fragment of HDS. A fragment
    /// may be missing: the server's answer to that is part of a study's question.
    fn is_of(&self, media: &Media, path: &str) -> bool {
        let Some(own) = media.without_title(path) else { return false };
        let file = own.strip_prefix(media.folder().as_str());
        self.known.contains(own.as_ref())
            || media.hds().is_some() && file.is_some_and(HdsModel::is_fragment)
            || media.live_window_ns.is_some() && file.is_some_and(|file| is_live_segment(media, file))
    }

    /// Whether a path with random parts, which may stand for too many paths to list, stands for paths of
    /// media.
    fn are_of_media(&self, path: &str) -> bool {
        let Ok(Some(pattern)) = Pattern::parse(without_query(path)) else { return false };
        let ends = [pattern.least(), pattern.most()];
        self.media.iter().any(|media| ends.iter().all(|path| self.is_of(media, path)))
    }
}

/// Whether a file is a segment of a live stream, whose numbers have no end.
fn is_live_segment(media: &Media, file: &str) -> bool {
    if media.feed().is_some() {
        return file.strip_suffix(".ts").is_some_and(|number| number.parse::<u64>().is_ok());
    }
    let Some((folder, segment)) = file.rsplit_once('/') else { return false };
    let is_number = segment.strip_suffix(".m4s").is_some_and(|number| number.parse::<u64>().is_ok());
    let mut tracks = media.presentation.tracks.iter().flat_map(|track| &track.representations);
    is_number && tracks.any(|of| of.name == folder)
}

/// Checks one path of a loop, whose problem ends a sentence that the server's name begins.
fn check_path(path: &str, method: &str, contents: Contents, known: &KnownPaths<'_>) -> Result<(), String> {
    let is_read = ["GET", "HEAD"].contains(&method);
    let is_file = |path: &str| known.contains(without_query(path));
    if is_read && known.are_of_media(path) {
        return Ok(());
    }
    match contents {
        Contents::Unknown => Ok(()),
        Contents::Files => {
            let exists = |path: &String| {
                bytes_of_path(path).is_some_and(|bytes| bytes <= MOST_FILE_BYTES) || is_file(path)
            };
            let problem = match every_path(path) {
                None => format!("`{path}` stands for more than {MOST_FILES} files"),
                Some(paths) => match paths.iter().find(|path| !exists(path)) {
                    Some(other) => format!("it has no `{}`", crate::formats::shown(other)),
                    None if is_read => return Ok(()),
                    None => format!("files have no method `{method}`"),
                },
            };
            Err(format!(
                "serves files only, and {problem}; request `/bytes/N` up to {} or paths of the study's \
                 pages and media with GET or HEAD, or use the server `origin`",
                format_bytes(crate::number::float(MOST_FILE_BYTES))
            ))
        }
        Contents::Origin => {
            let (least, most) = match Pattern::parse(path) {
                Ok(Some(pattern)) => (pattern.least(), pattern.most()),
                _ => (path.to_owned(), path.to_owned()),
            };
            [least, most].iter().try_for_each(|path| check_origin_path(path, method, is_file(path)))
        }
    }
}

fn check_origin_path(path: &str, method: &str, is_file: bool) -> Result<(), String> {
    let shown = crate::formats::shown(path);
    let wants_post = match OriginPath::parse(without_query(path)) {
        _ if is_file || path == "/" => false,
        Ok(Some(own)) => own == OriginPath::Echo,
        Ok(None) => {
            return Err(format!(
                "has no `{shown}`; request paths of the study's pages and media, `/bytes/N`, \
                 `/delay/MS`, `/status/NNN`, or `/echo` with a `body`"
            ));
        }
        Err(problem) => return Err(format!("has no `{shown}`: {problem}")),
    };
    match (wants_post, method) {
        (true, "POST" | "PUT") | (false, "GET" | "HEAD") => Ok(()),
        (true, _) => Err(format!("answers POST and PUT only at `{shown}`; give the path a `body`")),
        (false, _) => Err(format!("answers GET and HEAD only at `{shown}`; `/echo` answers POST and PUT")),
    }
}

/// The paths that a path with random parts stands for; `None` if they are too many.
fn every_path(path: &str) -> Option<Vec<String>> {
    match Pattern::parse(path) {
        Ok(Some(pattern)) => pattern.paths(MOST_FILES),
        _ => Some(vec![path.to_owned()]),
    }
}

fn without_query(path: &str) -> &str {
    path.split_once('?').map_or(path, |(path, _)| path)
}

#[cfg(test)]
mod tests {
    use crate::media::MediaLengths;
    use crate::study::tests::{SHORT, parse};

    /// A loop over these paths on a server of files.
    fn text(paths: &str) -> String {
        SHORT
            .replace("\"h3\"", "\"h1\"")
            .replace("[\"origin\"]", "[\"nginx\"]")
            .replace("metric = \"page_load_time\"", "metric = \"request_time\"")
            .replace(
                "kind = \"page\"\npage = \"small\"",
                &format!("kind = \"closed\"\npaths = [{paths}]\nrequests = 10"),
            )
    }

    #[test]
    fn paths_without_a_file_are_refused_before_the_first_run() {
        for (paths, expected) in [
            (
                "\"/bytes/5\", \"/echo\"",
                "the server `nginx` serves files only, and it has no `/echo`; request",
            ),
            ("\"/bytes/64000001\"", "it has no `/bytes/64000001`"),
            ("\"/bytes/{random:1-20001}\"", "`/bytes/{random:1-20001}` stands for more than 20000 files"),
            ("\"/status/{random:200-204}\"", "it has no `/status/200`"),
            ("\"/bytes/{random:60000000-60000100}\"", "need 101 files of 6.06 GB for"),
        ] {
            let fault = parse(&text(paths)).unwrap_err();
            assert!(fault.contains(expected), "{paths}: {fault}");
        }
    }

    #[test]
    fn what_the_origin_lacks_is_refused_before_the_first_run() {
        let origin = |text: &str| parse(&text.replace("\"nginx\"", "\"origin\"")).map(drop);
        for (paths, expected) in [
            ("\"/bytes/abc\"", "the server `origin` has no `/bytes/abc`: `abc` is not a length; write 0 to"),
            ("\"/status/{random:598-600}\"", "has no `/status/600`: `600` is not a status"),
            ("\"/nope\"", "has no `/nope`; request paths of the study's pages and media, `/bytes/N`"),
            ("\"/echo\"", "answers POST and PUT only at `/echo`; give the path a `body`"),
        ] {
            let fault = origin(&text(paths)).unwrap_err();
            assert!(fault.contains(expected), "{paths}: {fault}");
        }
        for paths in ["\"/\", \"/bytes/1?x=2\"", "\"/status/{random:200-204}\", \"/delay/1.5\""] {
            assert_eq!(origin(&text(paths)), Ok(()), "{paths}");
        }
    }

    #[test]
    fn methods_that_a_server_lacks_are_refused_before_the_first_run() {
        let with =
            |paths: &str, more: &str| text(paths).replace("requests = 10", &format!("requests = 10\n{more}"));
        let origin =
            |paths: &str, more: &str| parse(&with(paths, more).replace("\"nginx\"", "\"origin\"")).map(drop);
        let fault = parse(&with("\"/bytes/5\"", "body = 'x'")).unwrap_err();
        assert!(fault.contains("serves files only, and files have no method `POST`; request"), "{fault}");
        assert!(parse(&with("\"/bytes/5\"", "method = 'HEAD'")).is_ok());
        assert_eq!(origin("\"/echo\"", "body = 'x'"), Ok(()));
        let fault = origin("\"/bytes/5\"", "method = 'DELETE'").unwrap_err();
        assert!(fault.contains("answers GET and HEAD only at `/bytes/5`; `/echo` answers"), "{fault}");
        assert_eq!(origin("\"/echo\"", "body = 'x'\nmethod = 'PUT'"), Ok(()));
    }

    #[test]
    fn lengths_are_those_of_paths_and_of_the_titles_of_media() {
        let film = "\n[media.film]\nsegment = '4s'\nlength = '16s'\ntitles = 3\nhds = { fragments = 5, gaps = [3] }\n\
                    video = { ladder = ['80kbit/s'] }\n";
        let plan =
            parse(&format!("{}{film}", text("\"/media/film/{random:1-3}/Seg1-Frag{random:2-4}\""))).unwrap();
        let paths = &plan.workloads[0].workload.as_loop().unwrap().paths;
        assert_eq!(plan.known_lengths(paths), [40_000; 6], "fragment 3 does not exist");
        let of = |path: &str| plan.known_lengths(&[path.to_owned()]);
        assert_eq!(of("/bytes/{random:8-9}"), [8, 9]);
        assert_eq!(of("/other"), [0; 0]);
    }

    #[test]
    fn every_path_of_a_pattern_is_a_file() {
        let plan = parse(&text("\"/bytes/{random:8-9}{random:1-2}\", \"/bytes/7\"")).unwrap();
        let files: Vec<u64> = plan.segments().into_values().collect();
        assert_eq!(files, [7, 81, 82, 91, 92]);
        assert_eq!(plan.workloads[0].workload.least_body_bytes(&MediaLengths::default()), 10 * (81 + 7) / 2);
    }
}
