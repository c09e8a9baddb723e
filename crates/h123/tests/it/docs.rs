//! The outputs in README and `docs/`, as the tool prints them. A comment before a fenced block says what the
//! block is:
//!
//! | comment | block |
//! |---|---|
//! | `<!-- file: PATH -->` | a file that the commands of the page use |
//! | `<!-- files of: PAGE -->` | none: the files of another page, too |
//! | `<!-- run: COMMAND -->` | none: the command prepares those below it |
//! | `<!-- output: COMMAND -->` | what the command prints |
//! | `<!-- output -->` | lines of `$ COMMAND`, each with what it prints |
//! | `<!-- output lines: TEXT \| TEXT -->` | the same, but only lines with one of these texts; `…` marks the others |
//!
//! Commands run in `sh`, in one temporary folder per page; one that ends with `&` runs until the page is
//! done. Outputs that contain times are marked `measured`, `measured lines` and `measured run` instead;
//! `by hand` if they need a terminal or a download.
//!
//! `make docs` writes the outputs, `make docs-measured PAGES='lab.md load.md'` also measured ones. The tests
//! compare the outputs exactly. They do not measure: the words of a measured block have to be words that h123
//! prints.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::data::python;
use crate::tool::{H123, folder, machine, repository};

/// Set to write the outputs instead of comparing them.
const UPDATE: &str = "H123_UPDATE_DOCS";

/// The pages, such as `README.md`, whose measured outputs are written too, or `all`.
const MEASURE: &str = "H123_MEASURE_DOCS";

/// The longest time of a command.
const LIMIT_S: u64 = 900;

/// How the rest of a wrapped line begins.
const CONTINUATION: &str = "               ";

/// Words that other programs print in measured blocks: ping, curl, ip, tshark, Python and DuckDB.
const OTHER_PROGRAMS: &str = "bytes from icmp_seq ttl packets transmitted received packet loss statistics \
    min avg max mdev curl link headers varchar double cannot assign requested address frozen bootstrap \
    modulenotfounderror";

#[test]
fn outputs_of_the_documentation_are_current() {
    let measured_pages = std::env::var(MEASURE).unwrap_or_default();
    let is_updating = std::env::var_os(UPDATE).is_some();
    for path in pages() {
        let name = path.file_name().unwrap().to_string_lossy();
        let is_measuring = measured_pages.split_whitespace().any(|page| page == "all" || page == name);
        let _machine = is_measuring.then(machine);
        let written = fs::read_to_string(&path).unwrap();
        let mut runner = Runner::new(is_measuring);
        let current = with_blocks(&written, |directive, old| runner.block(directive, old));
        if is_updating || is_measuring {
            fs::write(&path, current).unwrap();
        } else {
            let stale = written.lines().zip(current.lines()).find(|(old, new)| old != new);
            assert!(written == current, "{} is stale; run `make docs`: {stale:?}", path.display());
        }
    }
}

#[test]
fn measured_outputs_have_the_words_of_the_tool() {
    let mut known = words(OTHER_PROGRAMS);
    let mut faults = Vec::new();
    for folder in ["studies", "networks", "topologies", "pages", "servers", "clients", "crates"] {
        collect_words(&repository().join(folder), &mut known);
    }
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let mut known = known.clone();
        let mut blocks = 0;
        with_blocks(&page, |directive, block| {
            known.extend(words(directive.text));
            if directive.verb == "file" {
                known.extend(words(block));
            } else if directive.verb == "files of" {
                let files = files(&repository().join("docs").join(directive.text));
                known.extend(files.iter().flat_map(|(_, content)| words(content)));
            } else if directive.is_measured() {
                let (commands, printed) = commands_and_output(block);
                known.extend(words(&commands));
                let unknown: Vec<_> =
                    words(&printed).into_iter().filter(|word| !known.contains(word)).collect();
                if !unknown.is_empty() {
                    faults.push(format!("{}: h123 prints no {unknown:?}, as in\n{block}", path.display()));
                }
                blocks += 1;
            }
            block.to_owned()
        });
        let is_example =
            ["README.md", "docs/load.md", "docs/lab.md"].map(|page| repository().join(page)).contains(&path);
        assert!(!is_example || blocks > 1, "{}: {blocks} measured blocks", path.display());
    }
    assert!(faults.is_empty(), "{}\nRun `make docs-measured`", faults.join("\n"));
}

/// Studies whose runs are measured are read by h123, too: their blocks are not compared.
#[test]
fn studies_of_the_documentation_are_valid() {
    let mut count = 0;
    for path in pages() {
        let mut runner = Runner::new(false);
        let page = fs::read_to_string(&path).unwrap();
        with_blocks(&page, |directive, old| {
            if matches!(directive.verb, "file" | "files of" | "run") {
                runner.block(directive, old);
            }
            if directive.verb == "file" && old.contains("question = ") {
                let command = format!("h123 plan {} > /dev/null || echo failed", directive.text);
                assert_eq!(runner.output_of(&command), "", "{}: {}", path.display(), directive.text);
                count += 1;
            }
            old.to_owned()
        });
    }
    assert!(count > 5, "{count} studies");
}

#[test]
fn blocks_are_filled_by_their_commands() {
    let page = "a\n<!-- file: f -->\n\n```\nx y\n```\n\
        <!-- output -->\n\n```\n$ cat \\\n  f\nold\n$ echo z >&2\n```\n\
        <!-- output: tr x w < f -->\n```\n```\n<!-- measured: date -->\n```\nkept\n```\n\
        <!-- output lines: 2 | 4 -->\n```\n$ seq 5\n```\nend\n";
    let expected = "a\n<!-- file: f -->\n\n```\nx y\n```\n\
        <!-- output -->\n\n```\n$ cat \\\n  f\nx y\n$ echo z >&2\nz\n```\n\
        <!-- output: tr x w < f -->\n```\nw y\n```\n<!-- measured: date -->\n```\nkept\n```\n\
        <!-- output lines: 2 | 4 -->\n```\n$ seq 5\n…\n2\n…\n4\n…\n```\nend\n";
    let mut runner = Runner::new(false);
    assert_eq!(with_blocks(page, |directive, old| runner.block(directive, old)), expected);
}

#[test]
fn words_of_a_source_are_those_that_it_prints() {
    let source = "// moved away\nlet moved = \"said \\\"gone\\\"\";\nput(\"h3 done\");\n#[cfg(test)]\nmod tests {\"late\"}";
    assert_eq!(literals(source), " said gone h3 done");
}

/// README and the pages of `docs/` and `docs/studies/`.
fn pages() -> Vec<PathBuf> {
    let folders = ["docs", "docs/studies"].map(|folder| fs::read_dir(repository().join(folder)).unwrap());
    let files = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    pages.push(repository().join("README.md"));
    pages.sort();
    pages
}

/// The comment before a block: what the block is, and the path, the command or the texts.
#[derive(Clone, Copy)]
struct Directive<'a> {
    verb: &'a str,
    text: &'a str,
}

impl<'a> Directive<'a> {
    const VERBS: [&'static str; 9] = [
        "file",
        "files of",
        "run",
        "output",
        "output lines",
        "measured",
        "measured lines",
        "measured run",
        "by hand",
    ];

    /// The directive that this comment is, if it is one.
    fn new(comment: &'a str) -> Option<Self> {
        let (verb, text) = comment.split_once(':').unwrap_or((comment, ""));
        Self::VERBS.contains(&verb.trim()).then_some(Self { verb: verb.trim(), text: text.trim() })
    }

    fn has_block(self) -> bool {
        !self.verb.ends_with("run") && self.verb != "files of"
    }

    fn is_measured(self) -> bool {
        self.verb.starts_with("measured") || self.verb == "by hand"
    }
}

/// The page with the content of each block that follows a directive replaced.
fn with_blocks(page: &str, mut content: impl FnMut(Directive<'_>, &str) -> String) -> String {
    let mut result = String::new();
    let mut rest = page;
    while let Some((before, comment)) = rest.split_once("<!-- ") {
        let (comment, after) = comment.split_once("-->").unwrap();
        result += &format!("{before}<!-- {comment}-->");
        rest = after;
        let Some(directive) = Directive::new(comment.trim()) else { continue };
        if !directive.has_block() {
            content(directive, "");
            continue;
        }
        let (until_fence, block) = rest.split_once("```").unwrap();
        assert!(until_fence.trim().is_empty(), "`{comment}` is not directly before its block");
        let (language, block) = block.split_once('\n').unwrap();
        let end = if block.starts_with("```") { 0 } else { block.find("\n```").unwrap() + 1 };
        let new = content(directive, &block[..end]);
        result += &format!("{until_fence}```{language}\n{new}");
        result += "```";
        rest = &block[end + 3..];
    }
    result + rest
}

/// The files that a page shows.
fn files(page: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    with_blocks(&fs::read_to_string(page).unwrap(), |directive, block| {
        if directive.verb == "file" {
            files.push((directive.text.to_owned(), block.to_owned()));
        }
        block.to_owned()
    });
    files
}

/// The commands of a block, and what they printed.
fn commands_and_output(block: &str) -> (String, String) {
    let (mut commands, mut printed) = (String::new(), String::new());
    let mut goes_on = false;
    for line in block.lines() {
        let is_command = goes_on || line.starts_with("$ ");
        goes_on = is_command && line.ends_with('\\');
        let target = if is_command { &mut commands } else { &mut printed };
        *target += &format!("{line}\n");
    }
    (commands, printed)
}

/// Runs the commands of a page.
struct Runner {
    folder: TempDir,
    is_measuring: bool,
    background: Vec<Child>,
}

impl Runner {
    fn new(is_measuring: bool) -> Self {
        let folder = folder();
        fs::create_dir(folder.path().join(".bin")).unwrap();
        std::os::unix::fs::symlink(H123, folder.path().join(".bin/h123")).unwrap();
        Self { folder, is_measuring, background: Vec::new() }
    }

    /// The new content of a block.
    fn block(&mut self, directive: Directive<'_>, old: &str) -> String {
        if directive.verb == "file" {
            let path = self.folder.path().join(directive.text);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, old).unwrap();
            return old.to_owned();
        }
        if directive.verb == "files of" {
            for (path, content) in files(&repository().join("docs").join(directive.text)) {
                self.block(Directive { verb: "file", text: &path }, &content);
            }
            return String::new();
        }
        if directive.verb == "by hand" || directive.is_measured() && !self.is_measuring {
            return old.to_owned();
        }
        if directive.verb.ends_with("lines") {
            let kept: Vec<&str> = directive.text.split(" | ").collect();
            return self.session(old, |printed| lines_with(printed, &kept));
        }
        if directive.text.is_empty() {
            return self.session(old, ToOwned::to_owned);
        }
        self.output_of(directive.text)
    }

    /// Each command of the block with what it prints.
    fn session(&mut self, block: &str, filter: impl Fn(&str) -> String) -> String {
        let (commands, _) = commands_and_output(block);
        assert!(!commands.is_empty(), "no line of this block begins with `$ `:\n{block}");
        let split = commands.split("\n$ ").map(|command| command.trim_start_matches("$ ").trim_end());
        split.map(|command| format!("$ {command}\n{}", filter(&self.output_of(command)))).collect()
    }

    /// What a command prints on either stream, without the path of the folder.
    fn output_of(&mut self, command: &str) -> String {
        let printed = match command.strip_suffix('&') {
            Some(background) => self.begin(background),
            None => {
                let limit = format!("timeout {LIMIT_S} sh -c \"$0\" 2>&1");
                let output = self.shell(&limit).arg(command).stderr(Stdio::inherit()).output().unwrap();
                String::from_utf8(output.stdout).unwrap()
            }
        };
        let printed = printed.replace(&format!("{}/", self.folder.path().display()), "");
        let lines: String = printed.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        lines.trim_start_matches('\n').to_owned()
    }

    /// Begins a command in the background, and returns what it prints until it is quiet.
    fn begin(&mut self, command: &str) -> String {
        let log = self.folder.path().join(format!(".background-{}", self.background.len()));
        let file = fs::File::create(&log).unwrap();
        let mut shell = self.shell(&format!("exec timeout {LIMIT_S} sh -c 'exec {command}' 2>&1"));
        self.background.push(shell.stdout(file).process_group(0).spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut printed = String::new();
        loop {
            sleep(Duration::from_secs(1));
            let now = fs::read_to_string(&log).unwrap();
            if (!now.is_empty() && now == printed) || Instant::now() > deadline {
                return now;
            }
            printed = now;
        }
    }

    fn shell(&self, command: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(self.folder.path()).stdin(Stdio::null());
        shell.env("PATH", format!("{}/.bin:{path}:/usr/sbin", self.folder.path().display()));
        shell.env("REPOSITORY", repository()).env("DUCKDB_PYTHON", python());
        shell.env_remove("SSLKEYLOGFILE").env_remove("QLOGDIR").env("NO_COLOR", "1").env("COLUMNS", "100");
        shell
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        for child in &mut self.background {
            let group = format!("-{}", child.id());
            let _ = Command::new("kill").args(["-TERM", "--", &group]).status();
            let _ = child.wait();
        }
    }
}

/// The lines that contain one of the texts, with their continuations; `…` stands for those between them.
fn lines_with(printed: &str, texts: &[&str]) -> String {
    let mut kept = String::new();
    let mut is_gap = false;
    for line in printed.lines() {
        if line.starts_with(CONTINUATION) {
            kept += &if is_gap { String::new() } else { format!("{line}\n") };
        } else if texts.iter().any(|text| line.contains(text)) {
            kept += &format!("{line}\n");
            is_gap = false;
        } else if !is_gap {
            let indent = &line[..line.len() - line.trim_start().len()];
            kept += &format!("{}…\n", if line.trim().is_empty() { "" } else { indent });
            is_gap = true;
        }
    }
    kept
}

/// The words of a text in lower case: three letters or more.
fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| word.chars().count() >= 3);
    words.map(str::to_lowercase).collect()
}

/// Adds the words of every file that h123 prints something from.
fn collect_words(folder: &Path, known: &mut BTreeSet<String>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let is_test = path.ends_with("tests") || path.ends_with("benches");
        if path.is_dir() && !is_test {
            collect_words(&path, known);
            known.extend(words(&path.display().to_string()));
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            known.extend(words(&literals(&fs::read_to_string(&path).unwrap())));
        } else if path.extension().is_some_and(|end| end == "toml") {
            known.extend(words(&path.display().to_string()));
            known.extend(words(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The string literals of a source file without its comments and tests.
fn literals(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines: String = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |text, line| text + &line.replace("'\"'", "").replace("\\\"", "") + "\n");
    lines.split('"').skip(1).step_by(2).fold(String::new(), |text, literal| text + " " + literal)
}
