//! From the options of `h123 load` to one assignment for each thread.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use drive::input::read_bytes;
use model::assignment::{ASSIGNMENT_VERSION, Assignment, Target, Trust};
use model::formats::timing_script::{NumberedScript, ParsedScript, TimingScript};
use model::formats::url_list;
use model::options::{Body, ConnectionOptions, Options, PathOptions, RequestOptions, Visit};
use model::pins::CongestionControl;
use model::request_fields::{check_method, parse_field};
use model::schedule::{Arrivals, Schedule, Share, Stage};
use model::script::{Replay, Script, ScriptEntry};
use model::units::{self, counted};
use model::url_pattern::Pattern;
use model::workload::{ClosedLoop, LoopLoad, OpenLoop, Workload};
use model::{Clients, Pins, Start, Variant};

use super::LoadArgs;
use crate::connect::places::Places;
use crate::connect::target::{Url, read_option, variant_for};
use crate::exit::UsageError;

/// The duration of a load test that no option ends.
const DEFAULT_DURATION_NS: u64 = 10 * units::NANOS_PER_S;
/// How long to wait for the last responses.
const GRACE_NS: u64 = 30 * units::NANOS_PER_S;
/// The most bytes of all bodies of one test; all threads share them.
const MOST_BODY_BYTES: u64 = 256 << 20;
/// The most hosts of one test.
const MOST_HOSTS: usize = 1000;

/// One assignment per thread, and how long each DNS lookup of a name took, in nanoseconds.
///
/// # Errors
/// Options contradict each other, a file cannot be read, or a name does not resolve.
pub(crate) fn assignments(args: &LoadArgs) -> Result<(Vec<Assignment>, Vec<u64>)> {
    check(args)?;
    let list = UrlList::of(args)?;
    let variant = variant_for(&list.urls[0], args.variant)?;
    let trust = args.trust.resolve()?;
    let (targets, target_of, dns_ns) = targets(args, &list.urls, variant, &trust)?;
    let lasts_ns = lasts_ns(args, &list);
    let whole_ns = lasts_ns.map(|lasts_ns| lasts_ns.saturating_add(args.load.warmup));
    args.protocols.check(variant, whole_ns)?;
    let tls = args.tls.resolve(&[variant], args.protocols.early_data)?;
    let mut options = options(args, &list, targets[1..].to_vec(), &target_of)?;
    options.protocols = args.protocols.options(tls, variant);
    let mut pins = Pins::default();
    args.protocols.pin(&mut pins);
    if let Some(name) = &args.connecting.congestion_control {
        pins.congestion_control = congestion_control(name)?;
    }
    let clock = load::Clock::begin();
    let assignments: Vec<Assignment> = (0..args.load.threads)
        .map(|index| Assignment {
            version: ASSIGNMENT_VERSION,
            #[expect(clippy::cast_possible_truncation, reason = "at most 256 threads")]
            group: index as u16,
            node: "local".to_owned(),
            clock: clock.clone(),
            target: targets[0].clone(),
            workload: workload(args, &list, index),
            pins: pins.clone(),
            seed: args.load.seed,
            clients: clients(args, index),
            deadline_ns: whole_ns.map_or(u64::MAX, |lasts| lasts.saturating_add(GRACE_NS)),
            ends_ns: None,
            options: options.clone(),
        })
        .collect();
    if let Some(first) = assignments.first() {
        load::check(first).map_err(|error| UsageError(format!("{error:#}")))?;
    }
    Ok((assignments, dns_ns))
}

/// The clients of a thread: one, or for each of its connections one that replays the whole script.
fn clients(args: &LoadArgs, index: u32) -> Clients {
    if !args.load.script_each {
        return Clients::ONE;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a share of a u32")]
    let count = share(args.load.connections.into(), index, args.load.threads) as u32;
    Clients::all(count, Start::Together)
}

/// The part that thread `index` has of a number.
fn share(total: u64, index: u32, threads: u32) -> u64 {
    let threads = u64::from(threads);
    total / threads + u64::from(u64::from(index) < total % threads)
}

/// Refuses contradictions that depend on values; clap has refused the others.
fn check(args: &LoadArgs) -> Result<(), UsageError> {
    let load = &args.load;
    if !load.stages.is_empty() && load.stages.iter().all(|stage| stage.from.0 + stage.to.0 == 0) {
        return Err(UsageError("--stages without any request; give one of them a rate above 0".into()));
    }
    if load.threads > load.connections {
        let (threads, connections) = (load.threads, counted(load.connections.into(), "connection"));
        return Err(UsageError(format!(
            "{threads} threads for {connections}; use at most one thread per connection"
        )));
    }
    if load.replay == Replay::Dependency && load.threads > 1 && !load.script_each {
        return Err(UsageError(
            "--replay dependency: requests of one script wait for each other, on one thread; add --script-each, or \
             remove --threads"
                .into(),
        ));
    }
    match args.output.latency_threshold().filter(|_| args.connecting.coalesce.is_some()) {
        Some(threshold) => Err(UsageError(format!(
            "--coalesce delays every response; it cannot be used with --fail-if '{threshold}'"
        ))),
        None => Ok(()),
    }
}

/// A body as the command line or a list of URLs gives it.
enum WrittenBody {
    Text(String),
    File(String),
}

/// The URLs of a test, from the command line or from a file.
struct UrlList {
    urls: Vec<Url>,
    methods: Vec<Option<String>>,
    bodies: Vec<Option<WrittenBody>>,
    /// Of a script: what differs from the defaults for each URL.
    own: Vec<PathOptions>,
    /// The requests of a script, with their recorded times.
    entries: Vec<ScriptEntry>,
    /// The script without its requests.
    script: TimingScript,
}

impl UrlList {
    fn of(args: &LoadArgs) -> Result<UrlList> {
        let base = args.url.as_deref().map(Url::parse).transpose()?;
        let mut list = UrlList {
            urls: Vec::new(),
            methods: Vec::new(),
            bodies: Vec::new(),
            own: Vec::new(),
            entries: Vec::new(),
            script: TimingScript::default(),
        };
        if let Some(path) = &args.load.script {
            list.read_script(path, base.as_ref())?;
        } else if let Some(path) = &args.requesting.urls {
            let text = read_option("--urls", path)?;
            let at = |error: String| UsageError(format!("--urls {}: {error}", path.display()));
            for entry in url_list::parse(&text).map_err(|error| at(error.to_string()))? {
                list.urls.push(absolute(entry.url, base.as_ref()).map_err(|error| at(format!("{error}")))?);
                list.methods.push(entry.method.map(str::to_owned));
                list.bodies.push(entry.body.map(|body| match body {
                    url_list::Body::Text(text) => WrittenBody::Text(text.to_owned()),
                    url_list::Body::File(file) => WrittenBody::File(file.to_owned()),
                }));
            }
        } else if let Some(base) = base {
            list.urls.push(base);
        }
        if list.urls.is_empty() {
            let (option, path) = match (&args.load.script, &args.requesting.urls) {
                (Some(path), _) => ("--script", path.display().to_string()),
                (None, path) => ("--urls", path.as_deref().unwrap_or(Path::new("")).display().to_string()),
            };
            return Err(UsageError(format!("{option} {path} contains no URL")).into());
        }
        for url in &list.urls {
            Pattern::parse(&url.path).map_err(|error| UsageError(error.to_string()))?;
        }
        Ok(list)
    }

    fn read_script(&mut self, path: &Path, base: Option<&Url>) -> Result<()> {
        let text = read_option("--script", path)?;
        let at = |error: String| UsageError(format!("--script {}: {error}", path.display()));
        let parsed = ParsedScript::parse(&text).map_err(|error| at(error.to_string()))?;
        let mut script = parsed.script;
        let NumberedScript { firsts, entries } = script.numbered();
        let origin = script.origin.as_deref().map(Url::parse).transpose()?;
        let base = base.or(origin.as_ref());
        for request in firsts.iter().map(|place| &script.requests[*place]) {
            self.urls.push(absolute(&request.url, base).map_err(|error| at(format!("{error}")))?);
            self.methods.push(request.method.clone());
            self.own.push(request.path_options());
        }
        self.entries = entries;
        script.requests = Vec::new();
        self.script = script;
        Ok(())
    }
}

/// The bodies of a test; each file is read once.
#[derive(Default)]
struct Bodies {
    bodies: Vec<Body>,
    files: HashMap<String, u32>,
    /// The bytes of all files.
    bytes: u64,
}

impl Bodies {
    fn add(&mut self, written: &WrittenBody) -> Result<u32> {
        let bytes = match written {
            WrittenBody::Text(text) => text.clone().into_bytes(),
            WrittenBody::File(path) => match self.files.get(path) {
                Some(known) => return Ok(*known),
                None => self.read(path)?,
            },
        };
        self.bodies.push(Body::from(bytes));
        let number = u32::try_from(self.bodies.len() - 1)?;
        if let WrittenBody::File(path) = written {
            self.files.insert(path.clone(), number);
        }
        Ok(number)
    }

    fn read(&mut self, path: &str) -> Result<Vec<u8>, UsageError> {
        let most = MOST_BODY_BYTES - self.bytes;
        let bytes = read_bytes(Path::new(path), most).map_err(|error| {
            UsageError(if error.kind() == ErrorKind::FileTooLarge {
                let most = MOST_BODY_BYTES >> 20;
                format!("with the body {path}, the bodies of this test have more than {most} MiB; use smaller files")
            } else {
                format!("cannot read the body {path}: {error}")
            })
        })?;
        self.bytes += bytes.len() as u64;
        Ok(bytes)
    }
}

/// A URL of a list; a path without a host is relative to the URL of the command line.
fn absolute(text: &str, base: Option<&Url>) -> Result<Url> {
    match base {
        Some(base) if text.starts_with('/') => {
            let scheme = if base.encrypted { "https" } else { "http" };
            Url::parse(&format!("{scheme}://{}{text}", base.authority))
        }
        None if text.starts_with('/') => {
            bail!(UsageError(format!("the path `{text}` has no host; add a URL to the command line")))
        }
        _ => Url::parse(text),
    }
}

/// The distinct hosts of all URLs, the host of each URL, and how long each DNS lookup took.
fn targets(
    args: &LoadArgs,
    urls: &[Url],
    variant: Variant,
    trust: &Trust,
) -> Result<(Vec<Target>, Vec<u16>, Vec<u64>)> {
    let places = Places::of(&args.connecting.places)?;
    let mut known: HashMap<String, u16> = HashMap::new();
    let mut targets: Vec<Target> = Vec::new();
    let mut target_of = Vec::with_capacity(urls.len());
    let mut dns_ns = Vec::new();
    for url in urls {
        if url.encrypted != variant.is_encrypted() {
            let fault = "http and https URLs cannot be mixed in one test";
            return Err(UsageError(fault.into()).into());
        }
        let key = url.authority.to_ascii_lowercase();
        if let Some(number) = known.get(&key) {
            target_of.push(*number);
            continue;
        }
        if targets.len() >= MOST_HOSTS {
            return Err(UsageError(format!("a test can have at most {MOST_HOSTS} hosts")).into());
        }
        let began = Instant::now();
        let address: SocketAddr = places.address(url)?;
        if url.host.parse::<IpAddr>().is_err() {
            dns_ns.push(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        let mut target = url.target(variant, address, trust.clone());
        if let Some(name) = &args.connecting.sni {
            target.server_name.clone_from(name);
        }
        if let Some(host) = header(args, "host") {
            target.authority = host;
        }
        let number = u16::try_from(targets.len())?;
        known.insert(key, number);
        targets.push(target);
        target_of.push(number);
    }
    Ok((targets, target_of, dns_ns))
}

fn header(args: &LoadArgs, wanted: &str) -> Option<String> {
    args.requesting.headers.iter().find_map(|header| {
        let (name, value) = header.split_once(':')?;
        name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
    })
}

fn options(
    args: &LoadArgs,
    list: &UrlList,
    further_targets: Vec<Target>,
    target_of: &[u16],
) -> Result<Options> {
    let (load, connecting) = (&args.load, &args.connecting);
    let mut bodies = Bodies::default();
    let data = args.requesting.data.as_deref().map(|data| match data.strip_prefix('@') {
        Some(path) => WrittenBody::File(path.to_owned()),
        None => WrittenBody::Text(data.to_owned()),
    });
    let body = data.map(|body| bodies.add(&body)).transpose()?;
    let mut paths = Vec::with_capacity(target_of.len());
    for (index, target) in target_of.iter().enumerate() {
        let own = list.bodies.get(index).and_then(Option::as_ref);
        let own = own.map(|body| bodies.add(body)).transpose()?;
        let method = list.methods.get(index).cloned().flatten();
        let of_script = list.own.get(index).cloned().unwrap_or_default();
        paths.push(PathOptions { target: *target, method, body: own, ..of_script });
    }
    let requests = RequestOptions {
        further_targets,
        paths: if paths.iter().all(|path| *path == PathOptions::default()) { Vec::new() } else { paths },
        method: args.requesting.method.as_deref().map(method).transpose()?,
        fields: fields(&args.requesting.headers)?,
        bodies: bodies.bodies,
        body,
        random_order: args.requesting.random,
        request_ids: false,
        random_parts: list.urls.iter().any(|url| matches!(Pattern::parse(&url.path), Ok(Some(_)))),
    };
    let connections = ConnectionOptions {
        // Names have been looked up already.
        dns_lookup: false,
        visit: Visit::First,
        requests_each: connecting.requests_per_connection,
        connect_timeout_ns: connecting.connect_timeout.0,
        request_timeout_ns: connecting.timeout.0,
        ramp_up_ns: load.ramp_up.unwrap_or(0),
        sources: connecting.source.clone(),
        tcp_congestion: connecting.congestion_control.clone(),
        nagle: connecting.nagle,
        send_buffer_bytes: connecting.send_buffer,
        receive_buffer_bytes: connecting.receive_buffer,
        coalesce_ns: connecting.coalesce.unwrap_or(0),
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share from 0 to 1")]
    let stop_at_failed_ppm = load.stop_at_failed.map(|share| (share * 1e6).round() as u32);
    // Requests are summed up as they end: memory does not grow with the test.
    let most_rows = Some(0);
    Ok(Options { requests, connections, stop_at_failed_ppm, most_rows, ..Options::default() })
}

fn method(text: &str) -> Result<String> {
    check_method(text).map_err(UsageError)?;
    Ok(text.to_owned())
}

/// The fields of `--header`, names in lower case, without `host`.
fn fields(headers: &[String]) -> Result<Vec<(String, String)>> {
    let mut fields = Vec::new();
    for header in headers {
        // The escaped form is one line.
        let fault = |why: String| UsageError(format!("header `{}`: {why}", header.escape_debug()));
        let (name, value) = header.split_once(':').ok_or_else(|| fault("write `Name: value`".to_owned()))?;
        fields.extend(parse_field(name, value).map_err(fault)?);
    }
    Ok(fields)
}

fn congestion_control(name: &str) -> Result<CongestionControl> {
    let all = [CongestionControl::Cubic, CongestionControl::Reno, CongestionControl::Bbr];
    let found = all.into_iter().find(|control| control.name() == name);
    let fault = || UsageError(format!("unknown congestion control `{name}`; use cubic, reno or bbr"));
    Ok(found.ok_or_else(fault)?)
}

fn duration_ns(args: &LoadArgs) -> Option<u64> {
    args.load.duration.or(args.load.requests.is_none().then_some(DEFAULT_DURATION_NS))
}

fn schedule(args: &LoadArgs, index: u32) -> Option<Schedule> {
    let load = &args.load;
    let share = Share { index, of: load.threads };
    let stages = match load.rate {
        Some(rate) => vec![Stage { from: rate, to: rate, duration_ns: duration_ns(args) }],
        None if load.stages.is_empty() => return None,
        None => load.stages.clone(),
    };
    let arrivals = if load.poisson { Arrivals::Poisson } else { Arrivals::Even };
    Some(Schedule { stages, arrivals, share })
}

/// How long the test lasts, if time ends it.
fn lasts_ns(args: &LoadArgs, list: &UrlList) -> Option<u64> {
    if args.load.script.is_some() {
        let last_ns = list.entries.last().map_or(0, |entry| args.load.speed.of_ns(entry.at_ns));
        // The responses decide when the last request is due.
        return (args.load.replay == Replay::Schedule).then_some(last_ns);
    }
    match schedule(args, 0) {
        Some(schedule) => schedule.lasts_ns(args.load.requests),
        None => duration_ns(args),
    }
}

fn workload(args: &LoadArgs, list: &UrlList, index: u32) -> Workload {
    let load = &args.load;
    let share = |total: u64| share(total, index, load.threads);
    let paths = list.urls.iter().map(|url| url.path.clone()).collect();
    #[expect(clippy::cast_possible_truncation, reason = "a share of a u32")]
    let connections = share(u64::from(load.connections)) as u32;
    let common = LoopLoad {
        paths,
        connections,
        streams: load.streams,
        requests: load.requests,
        warmup_ns: load.warmup,
    };
    if load.script.is_some() {
        return Workload::Script(script(args, list, common, index));
    }
    match schedule(args, index) {
        Some(schedule) => Workload::Open(OpenLoop {
            load: common,
            schedule,
            queue_limit: load.queue.div_ceil(load.threads),
        }),
        None => Workload::Closed(ClosedLoop {
            load: LoopLoad { requests: load.requests.map(share), ..common },
            duration_ns: duration_ns(args),
            think: load.think_time.unwrap_or_default(),
        }),
    }
}

/// The script of a thread: every n-th request, or all of them by each of its clients.
fn script(args: &LoadArgs, list: &UrlList, load: LoopLoad, index: u32) -> Script {
    let options = &args.load;
    let at_speed = |entry: &ScriptEntry| ScriptEntry {
        at_ns: options.speed.of_ns(entry.at_ns),
        gap_ns: options.speed.of_ns(entry.gap_ns),
        ..entry.clone()
    };
    let mut entries: Vec<ScriptEntry> = list.entries.iter().map(at_speed).collect();
    entries.truncate(options.requests.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX)));
    let (connections, share) = match options.script_each {
        true => (1, Share::WHOLE),
        false => (load.connections, Share { index, of: options.threads }),
    };
    Script {
        load: LoopLoad { connections, requests: Some(entries.len() as u64), ..load },
        sets_connections: true,
        title: list.script.title.clone(),
        recorded_over: list.script.variant,
        replay: options.replay,
        speed: options.speed,
        entries,
        body_bytes: 0,
        share,
        queue_limit: options.queue.div_ceil(options.threads),
    }
}
