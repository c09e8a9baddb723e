//! Lists of URLs, the files of a loop's requests.

use super::Library;
use crate::error::{DataFile, InputError, Place};
use crate::formats::{LineError, url_list};
use crate::options::{Body, PathOptions, RequestOptions};
use crate::reader::{Placed, Table};
use crate::request_fields::check_method;
use crate::request_path::check_request_path;
use crate::units::{counted, format_bytes};
use crate::url_pattern::Pattern;
use crate::workload::Workload;

/// Every run's assignment holds the list, and so does the memory of every client process.
const MOST_URLS: usize = 200_000;
/// The bodies of a list are part of the plan.
const MOST_BODY_BYTES: usize = 16 << 20;

/// The list of a loop's URLs, if it does not list its paths itself.
#[derive(Clone, Debug)]
pub(super) struct UrlFile(Placed<String>);

impl UrlFile {
    /// The file that a workload names.
    ///
    /// # Errors
    /// It has none of `paths` and `urls`, or both.
    pub(super) fn read(table: &Table<'_>) -> Result<Option<UrlFile>, InputError> {
        match (table.strings("paths")?, table.string("urls")?) {
            (Some(_), None) => Ok(None),
            (None, Some(urls)) => Ok(Some(UrlFile(urls))),
            (Some(_), Some(urls)) => Err(urls.error("`urls` excludes `paths`; remove one of them")),
            (None, None) => {
                let problem = format!(
                    "{} has neither `paths` nor `urls`; add one, such as `paths = [\"/bytes/1000\"]`",
                    table.title()
                );
                Err(table.error(problem))
            }
        }
    }

    /// Reads the file into the workload and its options.
    ///
    /// # Errors
    /// It cannot be read; a line is wrong, with its place; or it has too many lines, or none.
    pub(super) fn fill(
        &self,
        workload: &mut Workload,
        options: &mut RequestOptions,
        library: &impl Library,
    ) -> Result<(), InputError> {
        let UrlFile(name) = self;
        let file = library.request_file(&name.value).map_err(|problem| name.error(problem))?;
        let paths = read_urls(&file, options, library)?;
        if paths.is_empty() {
            return Err(name.error(format!("{} contains no path; write one on each line", file.file)));
        }
        if let Some(load) = workload.as_loop_mut() {
            load.paths = paths;
        }
        Ok(())
    }
}

/// Checks a path of a workload, which may have random parts.
pub(super) fn check_path(path: &str) -> Result<(), String> {
    check_request_path(path)?;
    Pattern::parse(path).map(drop).map_err(|error| error.to_string())
}

/// An error of a line and column of a file.
pub(super) fn at(file: &DataFile, (line, column): (usize, usize), problem: impl Into<String>) -> InputError {
    InputError { place: Place { file: file.file.clone(), line, column }, problem: problem.into() }
}

/// Checks a URL of a line: the study's server answers, so it is a path.
pub(super) fn path_of(file: &DataFile, line: usize, url: &str) -> Result<String, InputError> {
    if let Some((_, rest)) = url.split_once("://") {
        let path = rest.find('/').map_or("/", |slash| &rest[slash..]);
        let shown = crate::formats::shown(path);
        return Err(at(
            file,
            (line, 1),
            format!("a URL with a host; write the path alone, `{shown}`, because the study's servers answer"),
        ));
    }
    check_path(url).map_err(|problem| at(file, (line, 1), problem))?;
    Ok(url.to_owned())
}

fn check_count(file: &DataFile, count: usize, most: usize, noun: &str) -> Result<(), InputError> {
    if count <= most {
        return Ok(());
    }
    let found = counted(count as u64, noun);
    Err(at(file, (most + 1, 1), format!("the file has {found}; write at most {most}")))
}

fn read_urls(
    file: &DataFile,
    options: &mut RequestOptions,
    library: &impl Library,
) -> Result<Vec<String>, InputError> {
    let of_line = |LineError { line, column, problem }| at(file, (line, column), problem);
    let entries = url_list::parse(&file.text).map_err(of_line)?;
    check_count(file, entries.len(), MOST_URLS, "URL")?;
    let mut own = Vec::with_capacity(entries.len());
    let mut paths = Vec::with_capacity(entries.len());
    let mut body_bytes = 0;
    for entry in entries {
        let fault = |problem: String| at(file, (entry.line, 1), problem);
        paths.push(path_of(file, entry.line, entry.url)?);
        if let Some(method) = entry.method {
            check_method(method).map_err(fault)?;
        }
        let body = match entry.body {
            None => None,
            Some(url_list::Body::Text(text)) => Some(text.to_owned()),
            Some(url_list::Body::File(body)) => {
                let read = library.request_file(body);
                Some(read.map_err(|problem| fault(format!("the body: {problem}")))?.text)
            }
        };
        let body = body.map(|body| {
            body_bytes += body.len();
            options.bodies.push(Body(body.into_bytes().into()));
            u32::try_from(options.bodies.len() - 1).unwrap_or(u32::MAX)
        });
        if body_bytes > MOST_BODY_BYTES {
            let most = format_bytes(crate::number::count(MOST_BODY_BYTES));
            return Err(fault(format!("with this body, the bodies of the list exceed {most}; write less")));
        }
        let method = entry.method.map(str::to_owned);
        own.push(PathOptions { method, body, ..PathOptions::default() });
    }
    if own.iter().any(|own| *own != PathOptions::default()) {
        options.paths = own;
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use crate::media::MediaLengths;
    use crate::options::PathOptions;
    use crate::plan::Plan;
    use crate::study::tests::{SHORT, parse};

    fn with(keys: &str) -> Result<Plan, String> {
        let text = SHORT.replace("page_load_time", "request_time");
        parse(&text.replace("kind = \"page\"\npage = \"small\"", keys))
    }

    fn closed(keys: &str) -> Result<Plan, String> {
        with(&format!("kind = 'closed'\nrequests = 20\n{keys}"))
    }

    #[test]
    fn a_list_has_paths_methods_and_bodies() {
        let plan = closed("urls = 'urls/few.txt'\norder = 'random'").unwrap();
        let named = &plan.workloads[0];
        assert_eq!(named.workload.paths(), ["/bytes/1000", "/echo?a", "/echo"]);
        let requests = &named.options.requests;
        let bodies: Vec<&[u8]> = requests.bodies.iter().map(|body| &*body.0).collect();
        assert_eq!(bodies, [&b"{}"[..], b"a=b c"]);
        let post =
            |body| PathOptions { method: Some("POST".into()), body: Some(body), ..PathOptions::default() };
        assert_eq!(requests.paths, [PathOptions::default(), post(0), post(1)]);
        assert!(requests.random_order && !requests.random_parts);
        let words = named.describe();
        assert!(words.ends_with("20 requests; random order, method or body of 2 paths"), "{words}");
        assert_eq!(Plan::from_json(&serde_json::to_vec(&plan).unwrap()).unwrap(), plan);
        let plain = closed("urls = 'urls/plain.txt'").unwrap();
        let requests = &plain.workloads[0].options.requests;
        assert!(requests.paths.is_empty() && requests.random_parts && !requests.random_order);
        assert_eq!(
            plain.workloads[0].workload.least_body_bytes(&MediaLengths::default()),
            20 * (1000 + 10) / 2
        );
    }

    #[test]
    fn a_long_list_is_in_the_plan_once() {
        let plan = closed("urls = 'urls/many-100000'").unwrap();
        assert_eq!(plan.cells.len(), 2);
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(json.matches("\"/bytes/6999\"").count(), 14, "100 000 lines over 7000 paths");
        assert!(json.len() < 2_000_000, "{}", json.len());
        assert_eq!(Plan::from_json(json.as_bytes()).unwrap(), plan);
        let text = crate::plan_text::plan_text(&plan);
        assert!(text.contains("closed loop over 100000 paths") && text.len() < 5000, "{text}");
    }

    #[test]
    fn faults_of_lists_name_their_line() {
        for (keys, expected) in [
            ("urls = 'urls/host.txt'", "urls/host.txt:2:1: a URL with a host; write the path alone, `/x?y`"),
            ("urls = 'urls/space.txt'", "urls/space.txt:2:1: `/a b` is not a request; write `URL`"),
            ("urls = 'urls/pattern.txt'", "urls/pattern.txt:1:1: `{random:9-1}` is not a range"),
            ("urls = 'urls/body.txt'", "urls/body.txt:2:1: the body: there is no file missing"),
            ("urls = 'urls/empty.txt'", "s.toml:14:8: urls/empty.txt contains no path"),
            ("urls = 'urls/none.txt'", "s.toml:14:8: there is no file urls/none.txt"),
            (
                "urls = 'urls/many-200001'",
                "urls/many-200001:200001:1: the file has 200001 URLs; write at most 200000",
            ),
            ("urls = 'urls/few.txt'\npaths = ['/a']", "s.toml:14:8: `urls` excludes `paths`"),
            ("order = 'random'", "has neither `paths` nor `urls`; add one"),
            ("paths = ['/a']\norder = 'shuffled'", "`order`: `shuffled` is not an order"),
            ("paths = ['/a{random:b}']", "`paths`: `{random:b}` is not a range"),
            ("script = 'scripts/short.tsv'", "`script` is not a key"),
        ] {
            let fault = closed(keys).unwrap_err();
            assert!(fault.contains(expected), "{keys}: {fault}");
        }
    }
}
