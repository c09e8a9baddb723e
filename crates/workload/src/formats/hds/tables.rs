//! The tables of a bootstrap: runs of segments (`asrt`) and of fragments (`afrt`).

use super::super::error::{FormatError, Place};
use super::super::isobmff::{Fields, IsoBox, write_full_box};

/// The most fragments that a bootstrap may describe.
pub const MOST_FRAGMENTS: usize = 200_000;

/// How many fragments segments have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentTable {
    /// The version of the box.
    pub box_version: u8,
    /// The qualities that it describes; empty for all.
    pub qualities: Vec<String>,
    /// Runs of segments with the same number of fragments.
    pub runs: Vec<SegmentRun>,
}

/// Consecutive segments with the same number of fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRun {
    /// The first segment. The run ends before the first of the next run.
    pub first_segment: u32,
    /// The fragment numbers that each segment covers.
    pub fragments_per_segment: u32,
}

/// When fragments begin and how long they play.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FragmentTable {
    /// The version of the box.
    pub box_version: u8,
    /// Ticks in a second; not 0.
    pub timescale: u32,
    /// The qualities that it describes; empty for all.
    pub qualities: Vec<String>,
    /// Runs of fragments with the same duration, and discontinuities.
    pub runs: Vec<FragmentRun>,
}

/// Consecutive fragments with the same duration, or a discontinuity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentRun {
    /// The first fragment, or the first missing number.
    pub first_fragment: u32,
    /// When it begins, in ticks.
    pub first_time: u64,
    /// The duration of each, in ticks; 0 in a discontinuity.
    pub duration: u32,
    /// What the discontinuity is; `None` in a run of fragments.
    pub discontinuity: Option<Discontinuity>,
}

/// What is not continuous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discontinuity {
    /// Nothing follows: the presentation ends.
    End,
    /// Fragment numbers: those of the entry do not exist.
    Numbers,
    /// Times.
    Times,
    /// Fragment numbers and times.
    NumbersAndTimes,
}

impl Discontinuity {
    /// Its value in the box.
    pub const fn indicator(self) -> u8 {
        match self {
            Discontinuity::End => 0,
            Discontinuity::Numbers => 1,
            Discontinuity::Times => 2,
            Discontinuity::NumbersAndTimes => 3,
        }
    }

    const fn of_indicator(indicator: u8) -> Option<Discontinuity> {
        match indicator {
            0 => Some(Discontinuity::End),
            1 => Some(Discontinuity::Numbers),
            2 => Some(Discontinuity::Times),
            3 => Some(Discontinuity::NumbersAndTimes),
            _ => None,
        }
    }
}

impl SegmentTable {
    /// Reads the box.
    pub(super) fn of_box(own: &IsoBox<'_>) -> Result<SegmentTable, FormatError> {
        let (box_version, _, mut fields) = own.full()?;
        let qualities = texts(&mut fields)?;
        let count = fields.u32()?;
        check_count(own, &fields, count, 8)?;
        let mut runs = Vec::new();
        for _ in 0..count {
            let (first_segment, fragments_per_segment) = (fields.u32()?, fields.u32()?);
            runs.push(SegmentRun { first_segment, fragments_per_segment });
        }
        Ok(SegmentTable { box_version, qualities, runs })
    }

    /// The table as a box.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_full_box(out, b"asrt", self.box_version, 0, |body| {
            write_texts(body, &self.qualities);
            body.extend(model::number::small(self.runs.len()).to_be_bytes());
            for run in &self.runs {
                body.extend(run.first_segment.to_be_bytes());
                body.extend(run.fragments_per_segment.to_be_bytes());
            }
        });
    }
}

impl FragmentTable {
    /// Reads the box.
    pub(super) fn of_box(own: &IsoBox<'_>) -> Result<FragmentTable, FormatError> {
        let (box_version, _, mut fields) = own.full()?;
        let timescale = positive(own, fields.u32()?)?;
        let qualities = texts(&mut fields)?;
        let count = fields.u32()?;
        check_count(own, &fields, count, 16)?;
        let mut runs = Vec::new();
        for _ in 0..count {
            let (first_fragment, first_time) = (fields.u32()?, fields.u64()?);
            let duration = fields.u32()?;
            let at = fields.position();
            let discontinuity = match duration {
                0 => Some(fields.u8()?),
                _ => None,
            };
            let unknown = |indicator: u8| {
                let problem = format!("the discontinuity indicator {indicator} is not one from 0 to 3");
                FormatError::at(Place::Byte(at), problem)
            };
            let discontinuity = discontinuity
                .map(|found| Discontinuity::of_indicator(found).ok_or_else(|| unknown(found)))
                .transpose()?;
            runs.push(FragmentRun { first_fragment, first_time, duration, discontinuity });
        }
        Ok(FragmentTable { box_version, timescale, qualities, runs })
    }

    /// The table as a box.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_full_box(out, b"afrt", self.box_version, 0, |body| {
            body.extend(self.timescale.to_be_bytes());
            write_texts(body, &self.qualities);
            body.extend(model::number::small(self.runs.len()).to_be_bytes());
            for run in &self.runs {
                body.extend(run.first_fragment.to_be_bytes());
                body.extend(run.first_time.to_be_bytes());
                match run.discontinuity {
                    Some(discontinuity) => {
                        body.extend([0; 4]);
                        body.push(discontinuity.indicator());
                    }
                    // A run without a duration would be read as a discontinuity.
                    None => body.extend(run.duration.max(1).to_be_bytes()),
                }
            }
        });
    }
}

/// A timescale, which must not be 0.
pub(super) fn positive(own: &IsoBox<'_>, timescale: u32) -> Result<u32, FormatError> {
    if timescale == 0 { Err(own.fault("has a timescale of 0")) } else { Ok(timescale) }
}

/// Whether the entries of a table can be in the bytes that follow.
fn check_count(own: &IsoBox<'_>, fields: &Fields<'_>, count: u32, each: usize) -> Result<(), FormatError> {
    if (count as usize).saturating_mul(each) > fields.rest().len() {
        return Err(own.fault(&format!("has fewer bytes than its {count} entries need")));
    }
    Ok(())
}

/// A list of texts.
pub(super) fn texts(fields: &mut Fields<'_>) -> Result<Vec<String>, FormatError> {
    let count = fields.u8()?;
    (0..count).map(|_| fields.text()).collect()
}

/// A text cannot contain its end.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

pub(super) fn write_texts(out: &mut Vec<u8>, texts: &[String]) {
    write_list(out, texts, |out, text| write_text(out, text));
}

/// A list of at most 255.
pub(super) fn write_list<T>(out: &mut Vec<u8>, list: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    let count = u8::try_from(list.len()).unwrap_or(u8::MAX);
    out.push(count);
    list.iter().take(count.into()).for_each(|own| write(out, own));
}
