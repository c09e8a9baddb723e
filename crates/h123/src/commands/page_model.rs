//! `h123 page-model`: a real page as a page file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::Args;
use drive::browsers::run::Observation;
use drive::input::read_text;
use drive::outside::crawl;
use model::Page;
use model::assignment::Trust;
use model::error::Source;
use model::units::counted;
use model::url::Url;
use workload::page_model::{HarPage, Modelled, page_file, parse_har, replay_file};

use crate::connect::advice;
use crate::connect::target::TrustOptions;
use crate::exit::{Exit, UsageError};
use crate::terminal::{note, print};

/// Make a page file from a recorded page load (HAR), or from a URL by following its HTML and CSS
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 page-model shop.har > pages/shop.toml
  h123 page-model https://www.example.test/ -o pages/example.toml
  h123 page-model https://www.example.test/ --browser chromium
  h123 page-model shop.har --replay -o pages/shop.toml

A HAR file knows what scripts request; save one with the network tools of a browser. A URL is fetched once: at most 300 \
resources, 50 MB, and 10 s for each.")]
pub(crate) struct PageModelArgs {
    /// A HAR file, or an http or https URL
    ///
    /// Example: shop.har
    source: String,
    /// Write to this new file instead of standard output
    ///
    /// Example: -o pages/shop.toml
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Load the URL in this browser, which runs its scripts, instead of following its HTML and CSS
    ///
    /// Example: --browser chromium
    #[arg(long, value_name = "NAME")]
    browser: Option<String>,
    /// Make a page that h123's origin serves, with the sizes, dependencies, hosts and think times of the real
    /// one
    ///
    /// Example: --replay
    #[arg(long)]
    replay: bool,
    #[command(flatten)]
    trust: TrustOptions,
}

/// Runs the command. Only a browser needs signals to be watched.
///
/// # Errors
/// The source is no page, or the file exists already.
pub(crate) fn run(
    args: &PageModelArgs,
    watch_signals: impl FnOnce() -> Result<Arc<AtomicBool>>,
) -> Result<Exit> {
    if let Some(output) = args.output.as_deref().filter(|output| output.symlink_metadata().is_ok()) {
        return Err(UsageError(format!("{} exists; choose another name", output.display())).into());
    }
    let is_url = ["http://", "https://"].iter().any(|scheme| args.source.starts_with(scheme));
    let url = || Url::parse(&args.source).map_err(UsageError);
    let model = match (is_url, &args.browser) {
        (true, Some(browser)) => {
            page_of_browser(&url()?, &args.trust.resolve()?, browser, &*watch_signals()?)?
        }
        (true, None) => model_of_url(&url()?, &args.trust.resolve()?)?,
        (false, None) => page_of_har(Path::new(&args.source))?,
        (false, Some(_)) => {
            return Err(
                UsageError("--browser requires a URL; a HAR file is a recorded load already".into()).into()
            );
        }
    };
    let text = if args.replay { model.replay_file() } else { model.file() };
    // What was written can be read: the limits of pages hold.
    let page = Page::parse("page", Source { file: "the page", text: &text })?;
    if args.replay {
        workload::content::check(&page).map_err(|error| UsageError(error.to_string()))?;
    }
    match &args.output {
        Some(output) => {
            fs::write(output, &text).with_context(|| format!("cannot write {}", output.display()))?;
        }
        None => print(text.trim_end())?,
    }
    note(false, &model::page::describe(&page));
    Ok(Exit::Done)
}

/// A page that was found or recorded.
struct PageModel {
    title: String,
    resources: Vec<Modelled>,
    notes: Vec<String>,
    /// Whether the waits for responses are known.
    has_waits: bool,
}

impl PageModel {
    /// The page of servers that h123 does not start.
    fn file(&self) -> String {
        page_file(&self.title, &self.resources, &self.notes)
    }

    /// The page that h123's origin serves.
    fn replay_file(&self) -> String {
        let waits = match self.has_waits {
            true => {
                "Think times: waits less the round trip to the host, the least of its waits and TCP handshakes."
            }
            false => "The source has no times of responses, so the servers do not think.",
        };
        replay_file(&self.title, &self.resources, &[&self.notes[..], &[waits.to_owned()]].concat())
    }
}

/// The page file of a URL, by following its HTML and CSS.
///
/// # Errors
/// A [`UsageError`]: the document cannot be fetched, or is no page.
pub(crate) fn page_of_url(url: &Url, trust: &Trust) -> Result<String, UsageError> {
    model_of_url(url, trust).map(|model| model.file())
}

fn model_of_url(url: &Url, trust: &Trust) -> Result<PageModel, UsageError> {
    let found = crawl(url, trust).map_err(|error| {
        let advice = advice::on_site(&error.0, "--cacert FILE", "--insecure");
        let remedy = advice.unwrap_or_else(|| match error.0.contains("NoApplicationProtocol") {
            true => "it lacks HTTP/1.1, which h123 uses to follow pages: record a HAR file with a browser"
                .to_owned(),
            false => "check that it opens from this machine".to_owned(),
        });
        UsageError(format!("{url} cannot be modelled: {error}; {remedy}"))
    })?;
    let mut notes = vec![format!("Found by following {url} without running scripts.")];
    notes.extend(found.notes);
    Ok(PageModel { title: url.to_string(), resources: found.resources, notes, has_waits: false })
}

/// The page of a URL, by what a browser requests for it.
fn page_of_browser(url: &Url, trust: &Trust, name: &str, stop: &AtomicBool) -> Result<PageModel> {
    let browser = drive::Browsers::find(name).map_err(|error| UsageError(error.to_string()))?;
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let har = browser
        .record(url, &Observation::default(), trust, &program, stop)
        .map_err(|error| UsageError(format!("{url} cannot be modelled: {error:#}")))?;
    let fault = |reason: &dyn std::fmt::Display| UsageError(format!("{url} cannot be modelled: {reason}"));
    Ok(page_of_har_text(&har, &fault)?)
}

fn page_of_har(path: &Path) -> Result<PageModel, UsageError> {
    let fault = |reason: &dyn std::fmt::Display| UsageError(format!("{}: {reason}", path.display()));
    let text = read_text(path).map_err(|error| fault(&format!("{error}; name a HAR file or a URL")))?;
    page_of_har_text(&text, &fault)
}

fn page_of_har_text(
    text: &str,
    fault: &dyn Fn(&dyn std::fmt::Display) -> UsageError,
) -> Result<PageModel, UsageError> {
    let page = parse_har(text).map_err(|error| fault(&error))?;
    let mut notes = vec!["Recorded by a browser.".to_owned()];
    if page.left_out > 0 {
        let records = counted(page.left_out as u64, "record");
        notes.push(format!("{records} left out: other pages, methods, failures and repetitions."));
    }
    let HarPage { title, resources, has_waits, .. } = page;
    Ok(PageModel { title, resources, notes, has_waits })
}
