//! The outputs of the generators, read strictly: what is missing or failed is an error, never a zero.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use workload::formats::clients::{Format, RequestedLoad};

/// What a generator reports about its run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Requests that succeeded.
    pub(crate) requests: u64,
    /// Requests per second by the tool's own clock.
    pub(crate) per_second: f64,
    /// CPU time in user space that the tool spent on its report after the test.
    pub(crate) report_cpu_ns: u64,
}

impl Answer {
    fn of(requests: u64, per_second: f64) -> Result<Self> {
        ensure!(requests > 0, "no request succeeded");
        ensure!(per_second.is_finite() && per_second > 0.0, "{per_second} requests/s is not a rate");
        Ok(Answer { requests, per_second, report_cpu_ns: 0 })
    }
}

/// The JSON of `h123 load --json`, which our h3 peer also prints.
pub(crate) fn h123(text: &str) -> Result<Answer> {
    let json: Value = serde_json::from_str(text).context("the output is not JSON")?;
    let requests = &json["requests"];
    none_failed(requests["failed"].as_u64().context("the output has no number `requests.failed`")?)?;
    Answer::of(
        requests["completed"].as_u64().context("the output has no number `requests.completed`")?,
        requests["per_second"].as_f64().context("the output has no number `requests.per_second`")?,
    )
}

/// The first reason of failures in the JSON of `h123 load --json`, if it is one.
pub(crate) fn h123_failure(text: &str) -> Option<String> {
    let json: Value = serde_json::from_str(text).ok()?;
    let error = json["errors"].get(0)?;
    Some(format!("{}: {}", error["kind"].as_str()?, error["first_reason"].as_str()?))
}

/// h2load's summary.
pub(crate) fn h2load(text: &str) -> Result<Answer> {
    let requests = after(text, "requests:")?;
    let count = |name: &str| -> Result<u64> {
        let part = requests
            .split(',')
            .find_map(|part| part.trim().strip_suffix(name)?.strip_suffix(' '))
            .with_context(|| format!("`requests: {requests}` has no number `{name}`"))?;
        whole(part)
    };
    none_failed(count("failed")? + count("errored")? + count("timeout")?)?;
    let codes = after(text, "status codes:")?;
    let succeeded = count("succeeded")?;
    let good = codes
        .split(',')
        .next()
        .and_then(|part| part.trim().strip_suffix(" 2xx"))
        .context("the line `status codes:` has no number of 2xx answers")?;
    // Bodies may still be on their way when the time is over: an answer with a status may then not count.
    ensure!(whole(good)? >= succeeded, "{good} answers were 2xx, but {succeeded} requests succeeded");
    let finished = after(text, "finished in")?;
    let rate = finished
        .split(',')
        .find_map(|part| part.trim().strip_suffix(" req/s"))
        .with_context(|| format!("`finished in {finished}` has no `req/s`"))?;
    Answer::of(succeeded, decimal(rate)?)
}

/// The output of a tool that studies run too, and the file that it wrote, in the form that they read.
pub(crate) fn client(format: Format, text: &str, file: &str, connections: u32) -> Result<Answer> {
    let load = RequestedLoad { connections: connections.into(), cut_off: 0 };
    let output = format.parse(text, file, load)?;
    if let Some((kind, count)) = output.failures.first() {
        bail!("{count} requests failed ({}); all must succeed", kind.name());
    }
    let took_ns = output.took_ns.context("the output does not have the duration of the test")?;
    let answer = Answer::of(output.ok, output.ok as f64 * 1e9 / took_ns as f64)?;
    Ok(Answer { report_cpu_ns: output.report_cpu_ns, ..answer })
}

/// oha's JSON. Requests that the end of the time cut off are no failures.
pub(crate) fn oha(text: &str) -> Result<Answer> {
    let json: Value = serde_json::from_str(text).context("the output is not JSON")?;
    let statuses =
        json["statusCodeDistribution"].as_object().context("the output has no `statusCodeDistribution`")?;
    let mut completed = 0;
    for (status, count) in statuses {
        ensure!(status.starts_with('2'), "answers had status {status}; all must be 2xx");
        completed += count
            .as_u64()
            .with_context(|| format!("the output has no number of answers with status {status}"))?;
    }
    if let Some((kind, count)) = json["errorDistribution"]
        .as_object()
        .context("the output has no `errorDistribution`")?
        .iter()
        .find(|(kind, _)| kind.as_str() != "aborted due to deadline")
    {
        bail!("{count} requests failed ({kind}); all must succeed");
    }
    let rate =
        json["summary"]["requestsPerSec"].as_f64().context("the output has no `summary.requestsPerSec`")?;
    Answer::of(completed, rate)
}

fn none_failed(failed: u64) -> Result<()> {
    ensure!(failed == 0, "{failed} requests failed; all must succeed");
    Ok(())
}

/// What follows a label at the start of a line.
fn after<'a>(text: &'a str, label: &str) -> Result<&'a str> {
    text.lines()
        .find_map(|line| line.trim().strip_prefix(label))
        .map(str::trim)
        .with_context(|| format!("the output has no line `{label} …`"))
}

fn whole(text: &str) -> Result<u64> {
    text.trim().parse().with_context(|| format!("`{text}` is not a whole number"))
}

fn decimal(text: &str) -> Result<f64> {
    text.trim().parse().with_context(|| format!("`{text}` is not a number"))
}

#[cfg(test)]
mod tests;
