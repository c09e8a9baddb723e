//! The kernel's texts below `/proc` as numbers: pure functions of bytes (proc(5)).
//!
//! What is not as expected is `None` or left out, never a guess: names of processes are anybody's choice.

use model::monitor::Counter;

/// What `/proc/PID/stat` and `/proc/PID/task/TID/stat` say (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat<'a> {
    /// The thread's name: at most 15 bytes of anything.
    pub(super) name: &'a [u8],
    /// `R`, `S`, …; `Z` where it has ended and was not waited for.
    pub(super) state: u8,
    pub(super) group: i32,
    pub(super) major_faults: u64,
    pub(super) user_ticks: u64,
    pub(super) system_ticks: u64,
    pub(super) threads: u64,
    /// When it began, in ticks since the machine's start: tells apart two processes with one number.
    pub(super) started_ticks: u64,
}

/// What a thread's `status` says (proc_pid_status(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) resident_bytes: u64,
    pub(super) peak_resident_bytes: u64,
    pub(super) voluntary_switches: u64,
    pub(super) involuntary_switches: u64,
}

/// What a thread's `schedstat` says; all 0 where the kernel does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) ran_ns: u64,
    pub(super) waited_ns: u64,
    /// How often it got a core.
    pub(super) slices: u64,
}

/// The time of a core, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CoreTicks {
    pub(super) user: u64,
    pub(super) system: u64,
    pub(super) idle: u64,
    pub(super) iowait: u64,
    pub(super) irq: u64,
    pub(super) softirq: u64,
    pub(super) steal: u64,
}

/// Bytes, packets and drops received, then the same sent.
pub(super) type Traffic = [u64; 6];

impl<'a> Stat<'a> {
    /// The name stands in parentheses and may hold any of them, so the last one ends it.
    pub(super) fn parse(text: &'a [u8]) -> Option<Stat<'a>> {
        let open = text.iter().position(|byte| *byte == b'(')?;
        let close = text.iter().rposition(|byte| *byte == b')')?;
        let name = text.get(open + 1..close)?;
        // The field behind the name is the third.
        let mut fields = [&b""[..]; 20];
        let mut words = words(text.get(close + 1..)?);
        for field in &mut fields {
            *field = words.next()?;
        }
        let field = |number: usize| number_of(fields[number - 3]);
        Some(Stat {
            name,
            state: *fields[0].first()?,
            group: i32::try_from(field(5)?).ok()?,
            major_faults: field(12)?,
            user_ticks: field(14)?,
            system_ticks: field(15)?,
            threads: field(20)?,
            started_ticks: field(22)?,
        })
    }
}

impl Status {
    /// A kernel thread has no memory, and a process that is ending none any more: 0.
    pub(super) fn parse(text: &[u8]) -> Status {
        let mut status = Status::default();
        for line in lines(text) {
            let Some((key, value)) = split_at_byte(line, b':') else { continue };
            let number = || words(value).next().and_then(number_of).unwrap_or(0);
            match key {
                b"VmHWM" => status.peak_resident_bytes = number().saturating_mul(1024),
                b"VmRSS" => status.resident_bytes = number().saturating_mul(1024),
                b"voluntary_ctxt_switches" => status.voluntary_switches = number(),
                b"nonvoluntary_ctxt_switches" => status.involuntary_switches = number(),
                _ => {}
            }
        }
        status
    }
}

impl Schedule {
    pub(super) fn parse(text: &[u8]) -> Option<Schedule> {
        let mut numbers = words(text).map(number_of);
        let mut next = || numbers.next().flatten();
        Some(Schedule { ran_ns: next()?, waited_ns: next()?, slices: next()? })
    }
}

/// The number that a file of nothing else holds.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    number_of(text.trim_ascii())
}

/// The lines of `/proc/stat` that are about one core each, with the core's number.
pub(super) fn cores(text: &[u8]) -> impl Iterator<Item = (u64, CoreTicks)> {
    lines(text).filter_map(|line| {
        let mut words = words(line.strip_prefix(b"cpu")?);
        let core = number_of(words.next().filter(|_| line.get(3).is_some_and(u8::is_ascii_digit))?)?;
        let mut next = || words.next().and_then(number_of);
        let (user, nice, system, idle, iowait) = (next()?, next()?, next()?, next()?, next()?);
        let (irq, softirq, steal) = (next()?, next()?, next()?);
        Some((core, CoreTicks { user: user.saturating_add(nice), system, idle, iowait, irq, softirq, steal }))
    })
}

/// Adds the wanted counters of `/proc/net/snmp` or `/proc/net/netstat`, two lines for each prefix: names, then values.
pub(super) fn add_pairs(text: &[u8], wanted: &[(Counter, usize)], values: &mut [u64]) {
    let mut lines = lines(text);
    while let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
        let (Some((prefix, names)), Some((same, numbers))) =
            (split_at_byte(names, b':'), split_at_byte(numbers, b':'))
        else {
            continue;
        };
        let is_wanted = |((wanted, _), _): &(Counter, usize)| wanted.as_bytes() == prefix;
        if prefix != same || !wanted.iter().any(is_wanted) {
            continue;
        }
        for (name, number) in words(names).zip(words(numbers)) {
            let mut found = wanted.iter().filter(|wanted| is_wanted(wanted) && wanted.0.1.as_bytes() == name);
            if let Some((_, place)) = found.next() {
                add(values, *place, number_of(number));
            }
        }
    }
}

/// Adds the wanted counters of `/proc/net/snmp6`: a name and a value on each line.
pub(super) fn add_lines(text: &[u8], wanted: &[(Counter, usize)], values: &mut [u64]) {
    for line in lines(text) {
        let mut words = words(line);
        let (Some(name), Some(number)) = (words.next(), words.next()) else { continue };
        let is_it =
            |((prefix, wanted), _): &&(Counter, usize)| prefix.is_empty() && wanted.as_bytes() == name;
        if let Some((_, place)) = wanted.iter().find(is_it) {
            add(values, *place, number_of(number));
        }
    }
}

fn add(values: &mut [u64], place: usize, number: Option<u64>) {
    if let (Some(value), Some(number)) = (values.get_mut(place), number) {
        *value = value.saturating_add(number);
    }
}

/// A number of `/proc/net/sockstat` or `sockstat6`, such as `tw` of `TCP`.
pub(super) fn socket_count(text: &[u8], protocol: &str, key: &str) -> Option<u64> {
    let line = lines(text).find_map(|line| {
        let (found, rest) = split_at_byte(line, b':')?;
        (found == protocol.as_bytes()).then_some(rest)
    })?;
    let mut words = words(line);
    words.find(|word| *word == key.as_bytes())?;
    number_of(words.next()?)
}

/// The interfaces of `/proc/net/dev`, with their names.
pub(super) fn interfaces(text: &[u8]) -> impl Iterator<Item = (&[u8], Traffic)> {
    lines(text).filter_map(|line| {
        // A name has no white space, but may have a colon.
        let colon = line.iter().rposition(|byte| *byte == b':')?;
        let name = words(line.get(..colon)?).next()?;
        let mut numbers = [0; 12];
        let mut words = words(line.get(colon + 1..)?);
        for number in &mut numbers {
            *number = number_of(words.next()?)?;
        }
        let [
            received_bytes,
            received_packets,
            _,
            received_drops,
            _,
            _,
            _,
            _,
            sent_bytes,
            sent_packets,
            _,
            sent_drops,
        ] = numbers;
        Some((name, [received_bytes, received_packets, received_drops, sent_bytes, sent_packets, sent_drops]))
    })
}

/// What people call a process, from its command line (words with a zero behind each) and its thread's name.
///
/// A title that a server gave itself (`nginx: worker process`) stands; of a command the program's name and its
/// subcommand (`h123 load`), without paths, options and what else is long.
pub(super) fn process_name(command: &[u8], thread: &[u8]) -> String {
    let mut args = command.split(|byte| *byte == 0).filter(|arg| !arg.is_empty());
    let Some(mut first) = args.next() else { return printable(thread) };
    if base_name(first).starts_with(b"ld-linux") {
        // A dynamic loader that was called by name says behind `--argv0` whom it runs as.
        let mut behind = args.clone().skip_while(|arg| *arg != b"--argv0").skip(1);
        if let Some(name) = behind.next() {
            return printable(base_name(name));
        }
    }
    if let Some(title) = first.windows(2).position(|pair| pair == b": ") {
        let end = first[title..].iter().position(|byte| *byte == b'/').map_or(first.len(), |at| title + at);
        first = &first[..end];
        return printable(first.trim_ascii());
    }
    let mut name = printable(base_name(first));
    let is_word = |arg: &&[u8]| {
        arg.len() <= MOST_SUBCOMMAND_BYTES
            && arg.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'-')
    };
    if let Some(word) = args.next().filter(is_word).filter(|arg| arg.first() != Some(&b'-')) {
        name.push(' ');
        name.push_str(&printable(word));
    }
    name
}

const MOST_SUBCOMMAND_BYTES: usize = 16;
const MOST_NAME_CHARS: usize = 48;

/// A name as text: what is no character, or would move a cursor, becomes a replacement character.
pub(super) fn printable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let clean = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(clean).take(MOST_NAME_CHARS).collect()
}

fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

fn split_at_byte(line: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = line.iter().position(|found| *found == byte)?;
    Some((&line[..at], &line[at + 1..]))
}

fn number_of(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
