//! The kernel's texts below `/proc` (proc(5)).
//!
//! Unexpected text gives `None` or is left out; nothing is guessed, because a process chooses its own name.

use model::monitor::Counter;
use rustix::fs::{AtFlags, CWD, statat};

/// `/proc/PID/stat` and `/proc/PID/task/TID/stat` (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat<'a> {
    /// The thread's name: at most 15 bytes of anything.
    pub(crate) name: &'a [u8],
    /// `R`, `S`, …; `Z` for a zombie.
    pub(crate) state: u8,
    pub(crate) group: i32,
    pub(crate) major_faults: u64,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    /// User and system time of the children that it waited for.
    pub(crate) children_ticks: (u64, u64),
    pub(crate) threads: u64,
    /// Start time in ticks since boot: it distinguishes two processes with the same PID.
    pub(crate) started_ticks: u64,
}

/// A thread's `status` (proc_pid_status(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) resident_bytes: u64,
    pub(crate) peak_resident_bytes: u64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
}

/// A thread's `schedstat`; all 0 where the kernel does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) ran_ns: u64,
    pub(crate) waited_ns: u64,
    /// How often it was scheduled.
    pub(crate) slices: u64,
}

/// The time of a core, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoreTicks {
    pub(crate) user: u64,
    pub(crate) system: u64,
    pub(crate) idle: u64,
    pub(crate) iowait: u64,
    pub(crate) irq: u64,
    pub(crate) softirq: u64,
    pub(crate) steal: u64,
}

/// Received bytes, packets and drops, then sent bytes, packets and drops.
pub(crate) type Traffic = [u64; 6];

impl<'a> Stat<'a> {
    /// The name is in parentheses and may contain parentheses, so the last one ends it.
    pub(crate) fn parse(text: &'a [u8]) -> Option<Stat<'a>> {
        let open = text.iter().position(|byte| *byte == b'(')?;
        let close = text.iter().rposition(|byte| *byte == b')')?;
        let name = text.get(open + 1..close)?;
        // The field after the name has number 3.
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
            children_ticks: (field(16)?, field(17)?),
            threads: field(20)?,
            started_ticks: field(22)?,
        })
    }
}

impl Status {
    /// The memory of kernel threads and of ending processes is 0.
    pub(crate) fn parse(text: &[u8]) -> Status {
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
    pub(crate) fn parse(text: &[u8]) -> Option<Schedule> {
        let mut numbers = words(text).map(number_of);
        let mut next = || numbers.next().flatten();
        Some(Schedule { ran_ns: next()?, waited_ns: next()?, slices: next()? })
    }
}

/// The number in a file that contains nothing else.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    number_of(text.trim_ascii())
}

/// The lines of `/proc/stat` about single cores, with the core's number.
pub(crate) fn cores(text: &[u8]) -> impl Iterator<Item = (u64, CoreTicks)> {
    lines(text).filter_map(|line| {
        let mut words = words(line.strip_prefix(b"cpu")?);
        let core = number_of(words.next().filter(|_| line.get(3).is_some_and(u8::is_ascii_digit))?)?;
        let mut next = || words.next().and_then(number_of);
        let (user, nice, system, idle, iowait) = (next()?, next()?, next()?, next()?, next()?);
        let (irq, softirq, steal) = (next()?, next()?, next()?);
        Some((core, CoreTicks { user: user.saturating_add(nice), system, idle, iowait, irq, softirq, steal }))
    })
}

/// Adds wanted counters of `/proc/net/snmp` or `/proc/net/netstat`, two lines for each prefix: names, then
/// values.
pub(crate) fn add_pairs(text: &[u8], wanted: &[(Counter, usize)], values: &mut [u64]) {
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

/// Adds wanted counters of `/proc/net/snmp6`: a name and a value on each line.
pub(crate) fn add_lines(text: &[u8], wanted: &[(Counter, usize)], values: &mut [u64]) {
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

/// A number in `/proc/net/sockstat` or `sockstat6`, such as `tw` of `TCP`.
pub(crate) fn socket_count(text: &[u8], protocol: &str, key: &str) -> Option<u64> {
    let line = lines(text).find_map(|line| {
        let (found, rest) = split_at_byte(line, b':')?;
        (found == protocol.as_bytes()).then_some(rest)
    })?;
    let mut words = words(line);
    words.find(|word| *word == key.as_bytes())?;
    number_of(words.next()?)
}

/// The interfaces of `/proc/net/dev`, with their names.
pub(crate) fn interfaces(text: &[u8]) -> impl Iterator<Item = (&[u8], Traffic)> {
    lines(text).filter_map(|line| {
        // A name has no white space, but may contain a colon.
        let colon = line.iter().rposition(|byte| *byte == b':')?;
        let name = words(line.get(..colon)?).next()?;
        let mut numbers = [0; 12];
        let mut words = words(line.get(colon + 1..)?);
        for number in &mut numbers {
            *number = number_of(words.next()?)?;
        }
        Some((name, [0, 1, 3, 8, 9, 11].map(|place| numbers[place])))
    })
}

/// A short name of a process, from its command line (words that end with a zero byte) and its thread's name.
///
/// A title that a server sets (`nginx: worker process`) is kept. A command is reduced to the program's name
/// and its subcommand (`h123 load`).
pub(crate) fn process_name(command: &[u8], thread: &[u8]) -> String {
    let mut args = command.split(|byte| *byte == 0).filter(|arg| !arg.is_empty());
    let Some(mut first) = args.next() else { return printable(thread) };
    if base_name(first).starts_with(b"ld-linux") {
        // A dynamic loader that was called by name has the program's name after `--argv0`.
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

/// A name as text; invalid and control characters become replacement characters.
pub(crate) fn printable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let clean = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(clean).take(MOST_NAME_CHARS).collect()
}

/// The PIDs of this machine's processes, in this process's PID namespace.
pub(crate) fn pids() -> impl Iterator<Item = i32> {
    numbered_entries("/proc")
}

/// The thread IDs of a process.
pub(crate) fn tids(pid: i32) -> impl Iterator<Item = i32> {
    numbered_entries(&format!("/proc/{pid}/task"))
}

fn numbered_entries(folder: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The inode of a process's PID namespace; `None` where the process is gone or belongs to another user.
pub(crate) fn pid_namespace(pid: i32) -> Option<u64> {
    statat(CWD, format!("/proc/{pid}/ns/pid"), AtFlags::empty()).ok().map(|stat| stat.st_ino)
}

/// The unit of CPU time in `/proc`, in nanoseconds.
pub(crate) fn tick_ns() -> u64 {
    // SAFETY: a plain query.
    let ticks_per_s = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1);
    1_000_000_000 / ticks_per_s
}

/// The user part of a CPU time. Only the ticks of 10 ms distinguish user and system time, so they give the
/// proportion.
pub(crate) fn user_part_ns(total_ns: u64, user_ticks: u64, system_ticks: u64) -> u64 {
    match user_ticks.saturating_add(system_ticks) {
        0 => total_ns / 2,
        ticks => {
            let part_ns = u128::from(total_ns) * u128::from(user_ticks) / u128::from(ticks);
            u64::try_from(part_ns).unwrap_or(total_ns)
        }
    }
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
mod tests;
