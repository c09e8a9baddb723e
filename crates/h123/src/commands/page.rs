//! `h123 page`: which HTTP version loads a site's page faster in a browser, over an emulated network.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::{Args, Parser};

use crate::commands::run::{self, RunArgs};
use crate::exit::{Exit, UsageError};

/// The study that is run with the site in place of its server and its page.
const STUDY: &str = "browsers";
/// A mobile network, unless the user names others.
const NETWORK: &str = "4g";
const BROWSER: &str = "chromium";

/// Compare the HTTP versions of a site's page in a browser, over emulated networks
///
/// This is the study `browsers` with the site in place of its server and its page. The browser loads the page
/// once without emulation to find its hosts; then each run loads it in a lab from which only these hosts can
/// be reached.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 page https://www.example.test/
  h123 page https://www.example.test/ --network 4g --network dsl --runs 10
  h123 page https://www.example.test/ --browser chromium --browser firefox
  h123 page https://127.0.0.1:8084/small/ --insecure --variant h3 --variant h2 --out results/mine

Exit status: as of `h123 run`")]
pub(crate) struct PageArgs {
    /// The URL of the page
    ///
    /// Example: https://www.example.test/
    url: String,
    /// Load it with this browser [default: chromium] (repeatable)
    ///
    /// Example: --browser chromium
    #[arg(long, value_name = "NAME")]
    browser: Vec<String>,
    /// Use this variant [default: those of the URL's scheme that browsers have] (repeatable)
    ///
    /// Example: --variant h2 --variant h3
    #[arg(long, value_name = "NAME")]
    variant: Vec<String>,
    /// Use this network [default: 4g] (repeatable)
    ///
    /// Example: --network 4g --network dsl
    #[arg(long, value_name = "NAME")]
    network: Vec<String>,
    /// Runs of each cell [default: 5]
    ///
    /// Example: --runs 10
    #[arg(long, value_name = "N")]
    runs: Option<u32>,
    /// The visit that is measured: `first`, `repeat` or `cached`, or `upgrade` for one over HTTP/3 after a
    /// first one over HTTP/2, by the site's own Alt-Svc [default: first]
    ///
    /// Example: --visit upgrade
    #[arg(long, value_name = "KIND", value_parser = ["first", "repeat", "cached", "upgrade"])]
    visit: Option<String>,
    /// Let the browser compute this many times slower than the machine, 1 to 100
    ///
    /// Example: --cpu-slowdown 4
    #[arg(long, value_name = "N")]
    cpu_slowdown: Option<u32>,
    /// Keep a picture of the page whenever it changes, in the result folder
    ///
    /// Example: --filmstrip
    #[arg(long)]
    filmstrip: bool,
    /// Accept any certificate of the site
    ///
    /// Example: --insecure
    #[arg(long, conflicts_with = "cacert")]
    insecure: bool,
    /// Trust this certificate authority (PEM) for the site instead of the system's
    ///
    /// Example: --cacert ca.pem
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Write the result to this new folder [default: results/browsers-UTC-TIME]
    ///
    /// Example: --out results/mine
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print only the result
    ///
    /// Example: -q
    #[arg(long, short)]
    quiet: bool,
    /// Print summary.json instead of tables
    ///
    /// Example: --json --quiet
    #[arg(long)]
    json: bool,
}

/// The arguments of `h123 run`, as a command line has them.
#[derive(Parser, Debug)]
struct RunLine {
    #[command(flatten)]
    args: RunArgs,
}

impl PageArgs {
    /// The same as a command line of `h123 run`.
    fn line(&self) -> Vec<String> {
        let mut line = ["run", STUDY, "--url", &self.url].map(str::to_owned).to_vec();
        let mut add = |option: &str, values: &[String], otherwise: &[&str]| {
            let otherwise = || otherwise.iter().map(|value| (*value).to_owned()).collect();
            let values: Vec<String> = if values.is_empty() { otherwise() } else { values.to_vec() };
            line.extend(values.into_iter().flat_map(|value| [option.to_owned(), value]));
        };
        let is_encrypted = self.url.starts_with("https://");
        let variants: &[&str] = match self.visit.as_deref() {
            _ if !is_encrypted => &["h1"],
            // Alt-Svc leads to no other.
            Some("upgrade") => &["h3"],
            _ => &["h1s", "h2", "h3"],
        };
        let path = |path: &Option<PathBuf>| -> Vec<String> {
            path.iter().map(|path| path.to_string_lossy().into_owned()).collect()
        };
        add("--client", &self.browser, &[BROWSER]);
        add("--variant", &self.variant, variants);
        add("--network", &self.network, &[NETWORK]);
        let number = |number: &Option<u32>| number.iter().map(u32::to_string).collect::<Vec<_>>();
        add("--runs", &number(&self.runs), &[]);
        add("--visit", self.visit.as_slice(), &[]);
        add("--cpu-slowdown", &number(&self.cpu_slowdown), &[]);
        add("--cacert", &path(&self.cacert), &[]);
        add("--out", &path(&self.out), &[]);
        let flags = [
            ("--filmstrip", self.filmstrip),
            ("--insecure", self.insecure),
            ("--quiet", self.quiet),
            ("--json", self.json),
        ];
        for (flag, is_given) in flags {
            line.extend(is_given.then(|| flag.to_owned()));
        }
        line
    }
}

/// Runs the command.
///
/// # Errors
/// As `h123 run --url`.
pub(crate) fn run(args: &PageArgs, stop: &Arc<AtomicBool>) -> Result<Exit> {
    let line = RunLine::try_parse_from(args.line()).map_err(|error| UsageError(error.to_string()))?;
    run::run(&line.args, stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        args: PageArgs,
    }

    #[test]
    fn a_page_is_a_run_of_the_study_with_the_site() {
        let line = |words: &str| Line::parse_from(words.split(' ')).args.line().join(" ");
        assert_eq!(
            line("page https://a.test/"),
            "run browsers --url https://a.test/ --client chromium --variant h1s --variant h2 --variant h3 --network 4g"
        );
        let all = line(
            "page http://a.test/ --browser mine --network lan --network dsl --runs 3 --insecure --cpu-slowdown 4 --filmstrip --out x -q",
        );
        assert_eq!(
            all,
            "run browsers --url http://a.test/ --client mine --variant h1 --network lan --network dsl --runs 3 \
             --cpu-slowdown 4 --out x --filmstrip --insecure --quiet"
        );
        assert!(RunLine::try_parse_from(all.split(' ')).is_ok());
        let upgrade = line("page https://a.test/ --visit upgrade");
        assert_eq!(
            upgrade,
            "run browsers --url https://a.test/ --client chromium --variant h3 --network 4g --visit upgrade"
        );
        assert!(RunLine::try_parse_from(upgrade.split(' ')).is_ok());
    }
}
