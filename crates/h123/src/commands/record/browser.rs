//! `h123 record --browser`: a timing script of what a browser requests for a URL.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use drive::browsers::run::Observation;
use model::Variant;
use model::units::parse_duration_ns;
use model::url::Url;
use workload::recording::{Choice, Recording, Waits, record_har};

use crate::connect::target::TrustOptions;
use crate::exit::UsageError;

/// How a browser is recorded.
#[derive(Args, Debug)]
pub(super) struct BrowserOptions {
    /// Record what this browser requests for a URL
    ///
    /// Example: --browser chromium
    #[arg(long, value_name = "NAME")]
    pub(super) browser: Option<String>,
    /// Force this variant in the browser; for `h2c`, which browsers lack, h2 [default: what browser and
    /// server choose]
    ///
    /// Example: --variant h3
    #[arg(long, requires = "browser", value_name = "VARIANT", value_parser = str::parse::<Variant>)]
    variant: Option<Variant>,
    /// Start the page's videos, and go on for this long after the page is loaded; requests then wait for the
    /// last response of their class, unless --waits says otherwise
    ///
    /// Example: --watch 60s
    #[arg(long, requires = "browser", value_name = "TIME", value_parser = parse_duration_ns)]
    watch: Option<u64>,
    #[command(flatten)]
    trust: TrustOptions,
}

impl BrowserOptions {
    /// The script of a page load, or of the time in which a page is watched.
    ///
    /// # Errors
    /// The browser cannot load the URL over the variant, or nothing is left of the recording.
    pub(super) fn record(
        &self,
        text: &str,
        browser: &str,
        choice: Choice,
        watch_signals: impl FnOnce() -> Result<Arc<AtomicBool>>,
    ) -> Result<Recording> {
        let url = Url::parse(text).map_err(UsageError)?;
        let forced = self.variant.map(trained_over);
        if let Some(variant) = forced.filter(|variant| variant.is_encrypted() != url.encrypted) {
            let problem = format!("--variant {variant} requires {}://; change the URL", variant.scheme());
            return Err(UsageError(problem).into());
        }
        let found = drive::Browsers::find(browser).map_err(|error| UsageError(error.to_string()))?;
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let observation = Observation { variant: forced, watched: self.watch.map(Duration::from_nanos) };
        let stop = watch_signals()?;
        let fault =
            |reason: &dyn std::fmt::Display| UsageError(format!("{url} cannot be recorded: {reason}"));
        let har = found
            .record(&url, &observation, &self.trust.resolve()?, &program, &stop)
            .map_err(|error| fault(&format!("{error:#}")))?;
        let waits = choice.waits.or(self.watch.map(|_| Waits::Class));
        let origin = choice.origin.clone().or_else(|| Some(url.origin()));
        let mut recording =
            record_har(&har, &Choice { waits, origin, ..choice }).map_err(|error| fault(&error))?;
        let version = found.probe(&program)?.version;
        let over = recording.script.variant.map_or("", |variant| variant.name());
        recording.script.recorded = match self.variant {
            Some(Variant::H2c) => {
                format!("{browser} {version} over {over}, because browsers have no h2c")
            }
            _ => format!("{browser} {version} over {over}"),
        };
        Ok(recording)
    }
}

/// The variant over which a browser's session is recorded to be replayed over another one.
fn trained_over(variant: Variant) -> Variant {
    if variant == Variant::H2c { Variant::H2 } else { variant }
}
