//! The outputs of the generators, read strictly: what is missing or failed is an error, never a zero.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// What a generator says about its own run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Requests answered in full and well.
    pub(crate) requests: u64,
    /// Requests a second by the tool's own clock.
    pub(crate) per_second: f64,
}

impl Answer {
    fn of(requests: u64, per_second: f64) -> Result<Self> {
        ensure!(requests > 0, "found no completed request, expected at least one");
        ensure!(
            per_second.is_finite() && per_second > 0.0,
            "found {per_second} requests/s, expected a positive number"
        );
        Ok(Answer { requests, per_second })
    }
}

/// The JSON of `h123 load --json`, which our h3 peer prints alike.
pub(crate) fn h123(text: &str) -> Result<Answer> {
    let json: Value = serde_json::from_str(text).context("the output is no JSON")?;
    let requests = &json["requests"];
    none_failed(requests["failed"].as_u64().context("found no number `requests.failed`")?)?;
    Answer::of(
        requests["completed"].as_u64().context("found no number `requests.completed`")?,
        requests["per_second"].as_f64().context("found no number `requests.per_second`")?,
    )
}

/// The first reason of failures in the JSON of `h123 load --json`, if it is one.
pub(crate) fn h123_failure(text: &str) -> Option<String> {
    let json: Value = serde_json::from_str(text).ok()?;
    let error = json["errors"].get(0)?;
    Some(format!("{}: {}", error["kind"].as_str()?, error["first_reason"].as_str()?))
}

/// wrk 4's summary. It prints lines about errors only where there were some.
pub(crate) fn wrk(text: &str) -> Result<Answer> {
    for line in text.lines().map(str::trim) {
        ensure!(
            !line.starts_with("Socket errors:") && !line.starts_with("Non-2xx"),
            "found `{line}`, expected no failure"
        );
    }
    let requests = text
        .lines()
        .filter_map(|line| line.trim().split_once(" requests in ").map(|(count, _)| count))
        .next()
        .context("found no line `N requests in S, B read`")?;
    Answer::of(whole(requests)?, decimal(after(text, "Requests/sec:")?)?)
}

/// h2load's summary.
pub(crate) fn h2load(text: &str) -> Result<Answer> {
    let requests = after(text, "requests:")?;
    let count = |name: &str| -> Result<u64> {
        let part = requests
            .split(',')
            .find_map(|part| part.trim().strip_suffix(name)?.strip_suffix(' '))
            .with_context(|| format!("found no `{name}` in `requests: {requests}`"))?;
        whole(part)
    };
    none_failed(count("failed")? + count("errored")? + count("timeout")?)?;
    let codes = after(text, "status codes:")?;
    let succeeded = count("succeeded")?;
    let good = codes
        .split(',')
        .next()
        .and_then(|part| part.trim().strip_suffix(" 2xx"))
        .context("found no number of 2xx answers in the line `status codes:`")?;
    // Bodies may still be on their way when the time is over: an answer with a status may then not count.
    ensure!(
        whole(good)? >= succeeded,
        "found {good} answers 2xx, expected at least the {succeeded} that succeeded"
    );
    let finished = after(text, "finished in")?;
    let rate = finished
        .split(',')
        .find_map(|part| part.trim().strip_suffix(" req/s"))
        .with_context(|| format!("found no `req/s` in `finished in {finished}`"))?;
    Answer::of(succeeded, decimal(rate)?)
}

/// siege 4's summary as JSON, which notes of its own may precede.
pub(crate) fn siege(text: &str) -> Result<Answer> {
    let begin = text.find('{').context("found no JSON object")?;
    let end = text.rfind('}').context("found no end of the JSON object")?;
    let object = text.get(begin..=end).context("found no JSON object")?;
    let json: Value = serde_json::from_str(object).context("siege's summary is no JSON")?;
    none_failed(json["failed_transactions"].as_u64().context("found no number `failed_transactions`")?)?;
    let transactions = json["transactions"].as_u64().context("found no number `transactions`")?;
    let successful =
        json["successful_transactions"].as_u64().context("found no number `successful_transactions`")?;
    ensure!(
        successful == transactions,
        "found {successful} successful of {transactions} transactions, expected all"
    );
    Answer::of(transactions, json["transaction_rate"].as_f64().context("found no number `transaction_rate`")?)
}

/// ApacheBench's summary.
pub(crate) fn ab(text: &str) -> Result<Answer> {
    none_failed(whole(after(text, "Failed requests:")?)?)?;
    ensure!(!text.contains("Non-2xx responses:"), "found `Non-2xx responses`, expected none");
    let complete = whole(after(text, "Complete requests:")?)?;
    let kept = whole(after(text, "Keep-Alive requests:")?)?;
    ensure!(
        kept.saturating_mul(100) >= complete.saturating_mul(99),
        "found {kept} of {complete} requests on kept connections, expected all"
    );
    let rate = after(text, "Requests per second:")?;
    Answer::of(complete, decimal(rate.split(" [").next().unwrap_or(rate))?)
}

/// oha's JSON. Requests that the end of the time cut off are no failures.
pub(crate) fn oha(text: &str) -> Result<Answer> {
    let json: Value = serde_json::from_str(text).context("the output is no JSON")?;
    let statuses = json["statusCodeDistribution"].as_object().context("found no `statusCodeDistribution`")?;
    let mut completed = 0;
    for (status, count) in statuses {
        ensure!(status.starts_with('2'), "found answers with status {status}, expected 2xx only");
        completed += count.as_u64().with_context(|| format!("found no number of answers with {status}"))?;
    }
    if let Some((kind, count)) = json["errorDistribution"]
        .as_object()
        .context("found no `errorDistribution`")?
        .iter()
        .find(|(kind, _)| kind.as_str() != "aborted due to deadline")
    {
        bail!("found {count} errors `{kind}`, expected none");
    }
    let rate = json["summary"]["requestsPerSec"].as_f64().context("found no `summary.requestsPerSec`")?;
    Answer::of(completed, rate)
}

fn none_failed(failed: u64) -> Result<()> {
    ensure!(failed == 0, "found {failed} failed requests, expected none");
    Ok(())
}

/// What follows a label at the start of a line.
fn after<'a>(text: &'a str, label: &str) -> Result<&'a str> {
    text.lines()
        .find_map(|line| line.trim().strip_prefix(label))
        .map(str::trim)
        .with_context(|| format!("found no line `{label} …`"))
}

fn whole(text: &str) -> Result<u64> {
    text.trim().parse().with_context(|| format!("found `{text}`, expected a whole number"))
}

fn decimal(text: &str) -> Result<f64> {
    text.trim().parse().with_context(|| format!("found `{text}`, expected a number"))
}

#[cfg(test)]
mod tests;
