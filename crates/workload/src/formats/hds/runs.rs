//! Runs of segments and fragments: which fragments they describe, and the runs that describe given fragments.

use super::super::error::FormatError;
use super::super::ticks_to_ns;
use super::tables::{Discontinuity, FragmentRun, FragmentTable, MOST_FRAGMENTS, SegmentRun, SegmentTable};

/// A fragment that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The segment that contains it.
    pub segment: u32,
    /// Its number.
    pub number: u32,
    /// When it begins, in nanoseconds of media time.
    pub start_ns: u64,
    /// How long it plays, in nanoseconds.
    pub duration_ns: u64,
}

/// Number and time of a fragment, in ticks, to be described by runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentSpan {
    /// Its number.
    pub number: u32,
    /// When it begins.
    pub start: u64,
    /// How long it plays.
    pub duration: u32,
}

impl SegmentTable {
    /// The segment that covers a fragment number.
    ///
    /// Numbers count from 1, or from the first of the table of fragments if segments before the first run are
    /// no longer listed. A segment covers as many *numbers* as its run says, missing ones included: packagers
    /// number fragments by time, and players divide numbers.
    pub(super) fn segment_of(&self, fragment: u32, first_fragment: u32) -> Option<u32> {
        let first = self.runs.first()?;
        let origin = if first.first_segment <= 1 { first_fragment.min(1) } else { first_fragment };
        let mut place = u64::from(fragment.checked_sub(origin)?);
        let mut runs = self.runs.iter().peekable();
        while let Some(SegmentRun { first_segment, fragments_per_segment }) = runs.next() {
            let each = u64::from((*fragments_per_segment).max(1));
            let segments =
                runs.peek().map(|next| u64::from(next.first_segment.saturating_sub(*first_segment)));
            match segments.map(|segments| segments.saturating_mul(each)) {
                Some(covered) if place >= covered => place -= covered,
                _ => return u32::try_from(u64::from(*first_segment) + place / each).ok(),
            }
        }
        None
    }

    /// The last number that the table covers, if its last run is one segment.
    fn last_number(&self, first_fragment: u32) -> Option<u64> {
        let first = self.runs.first()?;
        let origin = if first.first_segment <= 1 { first_fragment.min(1) } else { first_fragment };
        let mut covered = 0_u64;
        for pair in self.runs.windows(2) {
            let segments = u64::from(pair[1].first_segment.saturating_sub(pair[0].first_segment));
            covered = covered.saturating_add(segments.saturating_mul(pair[0].fragments_per_segment.into()));
        }
        let last = self.runs.last()?;
        let covered = covered.saturating_add(last.fragments_per_segment.into());
        u64::from(origin).checked_add(covered)?.checked_sub(1)
    }
}

impl FragmentTable {
    /// The first number that it describes: that of the first fragment, or of a gap before it that says where
    /// it begins. Segments cover missing numbers too.
    pub(super) fn first_number(&self) -> Option<u32> {
        let says_where = |run: &&FragmentRun| match run.discontinuity {
            None => true,
            Some(Discontinuity::End) => false,
            Some(_) => run.first_fragment > 0,
        };
        self.runs.iter().find(says_where).map(|run| run.first_fragment)
    }
}

/// The fragments that exist by these tables.
pub(super) fn fragments(
    segments: &SegmentTable,
    table: &FragmentTable,
    is_live: bool,
    current_time_ns: u64,
) -> Result<Vec<Fragment>, FormatError> {
    let timescale = u64::from(table.timescale);
    let first_number = table.first_number().unwrap_or(1);
    let mut found: Vec<Fragment> = Vec::new();
    for (place, run) in table.runs.iter().enumerate() {
        match run.discontinuity {
            Some(Discontinuity::End) => break,
            Some(_) => continue,
            None => {}
        }
        if found.last().is_some_and(|last| last.number >= run.first_fragment) {
            let problem =
                format!("the run from fragment {} does not follow the run before it", run.first_fragment);
            return Err(FormatError::new(problem));
        }
        let count = match count_by_next(table, place) {
            Some(count) => count,
            None => {
                let asrt = segments.last_number(first_number).filter(|_| !is_live);
                // A run that has just begun has no complete fragment yet.
                let least = u64::from(!is_live || found.is_empty());
                count_by_time(run, timescale, current_time_ns, is_live, asrt).max(least)
            }
        };
        if count > (MOST_FRAGMENTS - found.len()) as u64 {
            let problem = format!("the bootstrap describes more than {MOST_FRAGMENTS} fragments");
            return Err(FormatError::new(problem));
        }
        for index in 0..u32::try_from(count).unwrap_or(0) {
            let Some(number) = run.first_fragment.checked_add(index) else { break };
            let segment = segments.segment_of(number, first_number).ok_or_else(|| {
                FormatError::new(format!("the table of segments has no segment for fragment {number}"))
            })?;
            let after = u64::from(index) * u64::from(run.duration);
            found.push(Fragment {
                segment,
                number,
                start_ns: ticks_to_ns(run.first_time.saturating_add(after), timescale),
                duration_ns: ticks_to_ns(run.duration.into(), timescale),
            });
        }
    }
    Ok(found)
}

/// The number of fragments of a run by the entries after it; `None` if they do not end it.
fn count_by_next(table: &FragmentTable, place: usize) -> Option<u64> {
    let run = &table.runs[place];
    let later = &table.runs[place + 1..];
    // An entry that ends the presentation, and some discontinuities, have the number 0.
    let next = later.iter().find(|entry| entry.first_fragment > run.first_fragment);
    let by_number = next.map(|next| u64::from(next.first_fragment - run.first_fragment));
    let (Some(entry), Some(after)) = (later.first(), later.get(1)) else { return by_number };
    // A gap that does not say where it begins: the times before and after it do, if they are continuous.
    let says_where = entry.first_fragment > run.first_fragment && entry.first_fragment < after.first_fragment;
    match entry.discontinuity {
        Some(Discontinuity::Numbers) if !says_where && after.first_time > run.first_time => {
            let duration = u64::from(run.duration);
            let by_time = ((after.first_time - run.first_time + duration / 2) / duration).max(1);
            Some(by_number.map_or(by_time, |by_number| by_number.min(by_time)))
        }
        _ => by_number,
    }
}

/// The number of fragments of the last run: by the time that exists.
///
/// A live stream's last fragment counts once it is complete. On demand, the last fragment may be shorter than
/// the run says; if two numbers are possible and the table of segments ends with one of them, it is this one.
fn count_by_time(
    run: &FragmentRun,
    timescale: u64,
    current_time_ns: u64,
    is_live: bool,
    last_by_segments: Option<u64>,
) -> u64 {
    // Shares of a fragment below this are rounding errors.
    const LEAST_SHARE: u64 = 20;
    let left_ns = current_time_ns.saturating_sub(ticks_to_ns(run.first_time, timescale));
    let duration_ns = ticks_to_ns(run.duration.into(), timescale).max(1);
    let whole = left_ns / duration_ns;
    let rest_ns = left_ns % duration_ns;
    if is_live {
        return whole;
    }
    let by_segments = last_by_segments.and_then(|last| (last + 1).checked_sub(run.first_fragment.into()));
    if let Some(count) = by_segments.filter(|count| *count == whole || *count == whole + 1) {
        return count;
    }
    let has_more = rest_ns.saturating_mul(LEAST_SHARE) > duration_ns;
    whole + u64::from(has_more)
}

/// The runs that describe these fragments, whose numbers ascend; `is_ended` adds the end of the presentation.
pub fn runs_of(fragments: &[FragmentSpan], is_ended: bool) -> Vec<FragmentRun> {
    let mut runs: Vec<FragmentRun> = Vec::new();
    let mut previous: Option<FragmentSpan> = None;
    for fragment in fragments {
        let run = FragmentRun {
            first_fragment: fragment.number,
            first_time: fragment.start,
            duration: fragment.duration,
            discontinuity: None,
        };
        let next = previous.map(|previous| {
            let end = previous.start.saturating_add(previous.duration.into());
            (previous.number.saturating_add(1), end, previous.duration)
        });
        previous = Some(*fragment);
        let Some((number, time, duration)) = next else {
            runs.push(run);
            continue;
        };
        let kind = match (number == fragment.number, time == fragment.start) {
            (true, true) => None,
            (false, true) => Some(Discontinuity::Numbers),
            (true, false) => Some(Discontinuity::Times),
            (false, false) => Some(Discontinuity::NumbersAndTimes),
        };
        if kind.is_some() {
            let entry =
                FragmentRun { first_fragment: number, first_time: time, duration: 0, discontinuity: kind };
            runs.push(entry);
        }
        if kind.is_some() || duration != fragment.duration {
            runs.push(run);
        }
    }
    if is_ended {
        let discontinuity = Some(Discontinuity::End);
        let number = previous.map_or(0, |last| last.number.saturating_add(1));
        let time = previous.map_or(0, |last| last.start.saturating_add(last.duration.into()));
        runs.push(FragmentRun { first_fragment: number, first_time: time, duration: 0, discontinuity });
    }
    runs
}
