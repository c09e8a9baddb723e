//! `--url`: a study with a server that already runs in place of its servers, and with the server's own page.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;
use model::Plan;
use model::error::DataFile;
use model::plan::{OUTSIDE, RemoteTrust};
use model::study::{Override, OverrideValue};
use model::units::{NANOS_PER_S, format_ns};
use model::url::Url;
use workload::page_model::toml_text;

use crate::commands::page_model::page_of_url;
use crate::connect::advice;
use crate::connect::target::TrustOptions;
use crate::exit::UsageError;
use crate::library::{Further, plan_of, plan_with};
use crate::study::overrides::StudyOverrides;
use crate::terminal::note;

/// The name of the server, of its page or media, and of its workload.
const SITE: &str = "site";
/// How much of media is played.
const PLAYED_NS: u64 = 60 * NANOS_PER_S;

/// A site to measure.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "A site that already runs")]
pub(crate) struct SiteArgs {
    /// Measure this site with its own page instead of the study's servers and workloads; h123 starts no
    /// server. Of a media manifest (.mpd, .m3u8, .f4m): play the beginning of its media
    ///
    /// Example: --url https://www.example.test/
    #[arg(long, value_name = "URL", conflicts_with_all = ["server", "workload", "topology", "arm"])]
    pub(crate) url: Option<String>,
    /// Load this page of the site: a name from pages/. Without it, the page is found by following the HTML
    /// and CSS of the URL once
    ///
    /// Example: --url https://www.example.test/ --page shop
    #[arg(long, value_name = "NAME", requires = "url")]
    page: Option<String>,
    /// Accept any certificate of the site
    ///
    /// Example: --url https://127.0.0.1:8443/ --insecure
    #[arg(long, requires = "url", conflicts_with = "cacert")]
    insecure: bool,
    /// Trust this certificate authority (PEM) for the site instead of the system's
    ///
    /// Example: --url https://127.0.0.1:8443/ --cacert ca.pem
    #[arg(long, value_name = "FILE", requires = "url")]
    cacert: Option<PathBuf>,
}

impl SiteArgs {
    /// The plan of a study, with these overrides, for the site if there is one.
    ///
    /// # Errors
    /// The site does not answer, or the study is invalid.
    pub(crate) fn plan_of(&self, study: &str, overrides: &StudyOverrides) -> Result<Plan> {
        let Some(text) = &self.url else { return plan_of(study, overrides.values()) };
        let url = Url::parse(text).map_err(UsageError)?;
        if self.page.is_none()
            && let Some(rule) = rule_of_manifest(&url)
        {
            return self.plan_of_media(study, &url, rule, overrides.values());
        }
        let mut all = self.overrides(&url, overrides.values());
        all.extend(overrides.values().iter().cloned());
        if self.page.is_some() {
            return plan_of(study, &all);
        }
        let page = match browser_of(overrides.values()) {
            Some(browser) => self.page_in_browser(text, &browser)?,
            None => {
                let trust = TrustOptions { insecure: self.insecure, cacert: self.cacert.clone() };
                page_of_url(&url, &trust.resolve()?)?
            }
        };
        page.lines().map_while(|line| line.strip_prefix("# ")).for_each(|line| note(false, line));
        let file = DataFile { file: format!("the page of {url}"), text: page };
        plan_with(study, &all, Further { page: Some((SITE, file)), ..Further::default() })
    }

    /// The page file of what a browser requests for the URL. Another process finds it: this one must have a
    /// single thread until it can build labs.
    fn page_in_browser(&self, url: &str, browser: &str) -> Result<String> {
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let mut command = Command::new(program);
        command.args(["page-model", url, "--browser", browser]).args(self.insecure.then_some("--insecure"));
        if let Some(file) = &self.cacert {
            command.arg("--cacert").arg(file);
        }
        let output = command.output().context("cannot start this program")?;
        let words = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let reason = words.trim().trim_start_matches("h123: ").to_owned();
            return Err(UsageError(reason).into());
        }
        String::from_utf8(output.stdout).context("the page is not UTF-8")
    }

    /// These options as on a command line, each with a space before it.
    pub(crate) fn text(&self) -> String {
        let option = |name: &str, value: Option<String>| value.map(|value| format!(" --{name} {value}"));
        let cacert = self.cacert.as_ref().map(|file| file.display().to_string());
        let insecure = self.insecure.then(|| " --insecure".to_owned());
        let all = [
            option("url", self.url.clone()),
            option("page", self.page.clone()),
            option("cacert", cacert),
            insecure,
        ];
        all.into_iter().flatten().collect()
    }

    /// The plan of a study for a player of a manifest's media.
    fn plan_of_media(&self, study: &str, url: &Url, rule: &str, given: &[Override]) -> Result<Plan> {
        let trust = match &self.cacert {
            _ if self.insecure => RemoteTrust::Anyone,
            Some(file) => RemoteTrust::Authorities(file.to_string_lossy().into_owned()),
            None => RemoteTrust::System,
        };
        // The server is the one that has the segments.
        let found = drive::media::read_site(SITE, url, &trust).map_err(|error| {
            let reason = format!("{error:#}");
            let advice = advice::on_site(&reason, "--cacert FILE", "--insecure").unwrap_or_else(|| {
                format!("check it from this machine with `h123 urls {url}`, or name a page with --page")
            });
            UsageError(format!("{url} cannot be played: {reason}; {advice}"))
        })?;
        let origin = found.site().map(|site| format!("{}/", site.origin)).unwrap_or_default();
        let server = Url::parse(&origin).map_err(UsageError)?;
        let length_ns = found.presentation.duration_ns();
        if length_ns > PLAYED_NS {
            let (played, all) = (format_ns(PLAYED_NS), format_ns(length_ns));
            note(false, &format!("{url}: the first {played} of {all} are played"));
        }
        let played = format_ns(PLAYED_NS).replace(' ', "");
        let media =
            format!("{}, {}", toml_entry("manifest", &url.to_string()), toml_entry("length", &played));
        let workload = format!(
            "kind = \"player\", {}, buffer = \"12s\", {}",
            toml_entry("media", SITE),
            toml_entry("rule", rule)
        );
        let mut all = self.site_overrides(&server, &workload, &format!("plays {url} soonest"), given);
        let is_new = |key: &str| given.iter().all(|given| given.key != key);
        let further = [
            ("media", OverrideValue::Toml(format!("{{ {SITE} = {{ {media} }} }}"))),
            ("metric", OverrideValue::Text("startup_time".to_owned())),
        ];
        let further = further.into_iter().filter(|(key, _)| is_new(key));
        all.extend(further.map(|(key, value)| Override { key, value }));
        all.extend(given.iter().cloned());
        plan_with(study, &all, Further { media: Some(found), ..Further::default() })
    }

    fn overrides(&self, url: &Url, given: &[Override]) -> Vec<Override> {
        let page = toml_entry("page", self.page.as_deref().unwrap_or(SITE));
        self.site_overrides(url, &format!("kind = \"page\", {page}"), &format!("loads {url} soonest"), given)
    }

    /// The overrides of a site with one workload; `what` is what the versions are compared by.
    fn site_overrides(&self, url: &Url, workload: &str, what: &str, given: &[Override]) -> Vec<Override> {
        let mut server = toml_entry("url", &url.to_string());
        if let Some(file) = &self.cacert {
            server.push_str(&format!(", {}", toml_entry("cacert", &file.to_string_lossy())));
        }
        if self.insecure {
            server.push_str(", insecure = true");
        }
        let variants: Vec<String> = url.variants().iter().map(ToString::to_string).collect();
        // The user may leave out the first one.
        let chosen = given.iter().find_map(|given| match &given.value {
            OverrideValue::List(chosen) if given.key == "matrix.variant" => Some(chosen),
            _ => None,
        });
        let baseline =
            chosen.filter(|chosen| !chosen.contains(&variants[0])).map_or(&variants, |chosen| chosen);
        let baseline = &baseline[0].clone();
        let list = |values: Vec<String>| OverrideValue::List(values);
        let toml = |text: String| OverrideValue::Toml(text);
        let site = || list(vec![SITE.to_owned()]);
        let question = format!("Which HTTP version {what}?");
        let all = [
            ("question", OverrideValue::Text(question)),
            ("server", toml(format!("{{ {SITE} = {{ {server} }} }}"))),
            ("matrix.server", site()),
            ("workload", toml(format!("{{ {SITE} = {{ {workload} }} }}"))),
            ("matrix.workload", site()),
            ("topology", OverrideValue::Text(OUTSIDE.to_owned())),
            ("baseline", toml(format!("{{ {} }}", toml_entry("variant", baseline)))),
            ("matrix.variant", list(variants)),
        ];
        // What the user gives in addition comes later, and twice the same key once.
        let is_new = |key: &str| given.iter().all(|given| given.key != key);
        let all = all.into_iter().filter(|(key, _)| is_new(key));
        all.map(|(key, value)| Override { key, value }).collect()
    }
}

/// The rule that plays the media of a manifest: that of the player for its format; `None` if the URL is not
/// that of a manifest.
fn rule_of_manifest(url: &Url) -> Option<&'static str> {
    let path = url.path.split('?').next().unwrap_or_default();
    match path.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
        "mpd" => Some("dashjs"),
        "m3u8" => Some("hlsjs"),
        "f4m" => Some("throughput"),
        _ => None,
    }
}

/// The first browser among the clients of a command line.
fn browser_of(given: &[Override]) -> Option<String> {
    let clients = given.iter().filter(|given| given.key == "matrix.client");
    let names = clients.filter_map(|given| match &given.value {
        OverrideValue::List(names) => Some(names),
        _ => None,
    });
    let browsers = drive::Browsers::names();
    names.flatten().find(|name| browsers.contains(name)).cloned()
}

fn toml_entry(key: &str, value: &str) -> String {
    format!("{key} = {}", toml_text(value))
}
