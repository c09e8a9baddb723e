//! The bootstrap (`abst`): which fragments exist, and in which segments they are.

use super::super::error::FormatError;
use super::super::isobmff::{Fields, IsoBox, boxes, write_full_box};
use super::super::ticks_to_ns;
use super::runs;
use super::tables::{positive, texts, write_list, write_text, write_texts};

pub use super::runs::{Fragment, FragmentSpan, runs_of};
pub use super::tables::{
    Discontinuity, FragmentRun, FragmentTable, MOST_FRAGMENTS, SegmentRun, SegmentTable,
};

/// A bootstrap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bootstrap {
    /// The version of the box, 0 or 1. Both have the same fields.
    pub box_version: u8,
    /// Counts the changes of a live stream's bootstrap.
    pub version: u32,
    /// 0 for named access, 1 for access by range.
    pub profile: u8,
    /// Whether the stream is live.
    pub is_live: bool,
    /// Whether it replaces only a part of the one before.
    pub is_update: bool,
    /// Ticks in a second; not 0.
    pub timescale: u32,
    /// The duration of what exists, in ticks.
    pub current_time: u64,
    /// The distance from the media time to the SMPTE time code, in ticks.
    pub smpte_offset: u64,
    /// The movie's name; often empty.
    pub movie: String,
    /// The base URLs of servers.
    pub servers: Vec<String>,
    /// What qualities add to the movie's name.
    pub qualities: Vec<String>,
    /// Data of a rights management system.
    pub drm_data: String,
    /// Further data.
    pub metadata: String,
    /// The tables of segment runs; usually one for all qualities.
    pub segment_tables: Vec<SegmentTable>,
    /// The tables of fragment runs; usually one for all qualities.
    pub fragment_tables: Vec<FragmentTable>,
}

impl Bootstrap {
    /// Reads a bootstrap: the box `abst`, alone or after other boxes.
    ///
    /// # Errors
    /// There is none, or it is damaged or has more entries than bytes.
    pub fn parse(bytes: &[u8]) -> Result<Bootstrap, FormatError> {
        for own in boxes(bytes, 0) {
            let own = own?;
            if own.kind.0 == *b"abst" {
                return Bootstrap::of_box(&own);
            }
        }
        Err(FormatError::new("the bootstrap has no box `abst`; name a file that Adobe's format describes"))
    }

    /// Reads the box `abst`.
    ///
    /// # Errors
    /// As [`Bootstrap::parse`].
    pub fn of_box(own: &IsoBox<'_>) -> Result<Bootstrap, FormatError> {
        let (box_version, _, mut fields) = own.full()?;
        if box_version > 1 {
            return Err(own.fault(&format!("has version {box_version}; only 0 and 1 are known")));
        }
        let version = fields.u32()?;
        let bits = fields.u8()?;
        let timescale = positive(own, fields.u32()?)?;
        Ok(Bootstrap {
            box_version,
            version,
            profile: bits >> 6,
            is_live: bits & 0x20 != 0,
            is_update: bits & 0x10 != 0,
            timescale,
            current_time: fields.u64()?,
            smpte_offset: fields.u64()?,
            movie: fields.text()?,
            servers: texts(&mut fields)?,
            qualities: texts(&mut fields)?,
            drm_data: fields.text()?,
            metadata: fields.text()?,
            segment_tables: tables(&mut fields, *b"asrt", SegmentTable::of_box)?,
            fragment_tables: tables(&mut fields, *b"afrt", FragmentTable::of_box)?,
        })
    }

    /// The bootstrap as a box.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_full_box(out, b"abst", self.box_version, 0, |body| {
            body.extend(self.version.to_be_bytes());
            let bits = [(self.is_live, 0x20), (self.is_update, 0x10)];
            let bits = bits.iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, bit)| all | bit);
            body.push((self.profile & 0x3) << 6 | bits);
            body.extend(self.timescale.to_be_bytes());
            body.extend(self.current_time.to_be_bytes());
            body.extend(self.smpte_offset.to_be_bytes());
            write_text(body, &self.movie);
            write_texts(body, &self.servers);
            write_texts(body, &self.qualities);
            write_text(body, &self.drm_data);
            write_text(body, &self.metadata);
            write_list(body, &self.segment_tables, |body, table| table.write(body));
            write_list(body, &self.fragment_tables, |body, table| table.write(body));
        });
    }

    /// The fragments that exist, in the order of their numbers. With tables for several qualities, those of
    /// the first table: all qualities of a set have the same fragments.
    ///
    /// # Errors
    /// There is no table, the runs are not ascending, or they describe more than [`MOST_FRAGMENTS`].
    pub fn fragments(&self) -> Result<Vec<Fragment>, FormatError> {
        let missing = |name: &str| FormatError::new(format!("the bootstrap has no table `{name}` of runs"));
        let segments = self.segment_tables.first().ok_or_else(|| missing("asrt"))?;
        let fragments = self.fragment_tables.first().ok_or_else(|| missing("afrt"))?;
        let current_time_ns = ticks_to_ns(self.current_time, self.timescale.into());
        runs::fragments(segments, fragments, self.is_live, current_time_ns)
    }

    /// The segment in which a fragment with this number is or would be. Players compute it in the same way
    /// from the number alone, whether or not the fragment exists.
    pub fn segment_of(&self, fragment: u32) -> Option<u32> {
        let table = self.segment_tables.first()?;
        let first = self.fragment_tables.first().and_then(FragmentTable::first_number).unwrap_or(1);
        table.segment_of(fragment, first)
    }

    /// The fragment with this number, if it exists.
    ///
    /// # Errors
    /// As [`Bootstrap::fragments`].
    pub fn find(&self, fragment: u32) -> Result<Option<Fragment>, FormatError> {
        let fragments = self.fragments()?;
        let place = fragments.binary_search_by_key(&fragment, |known| known.number);
        Ok(place.ok().map(|place| fragments[place]))
    }
}

fn tables<T>(
    fields: &mut Fields<'_>,
    kind: [u8; 4],
    read: fn(&IsoBox<'_>) -> Result<T, FormatError>,
) -> Result<Vec<T>, FormatError> {
    let count = fields.u8()?;
    let mut tables = Vec::new();
    for _ in 0..count {
        let own = fields.next_box()?;
        if own.kind.0 != kind {
            return Err(own.fault(&format!("is where a box `{}` is expected", kind.escape_ascii())));
        }
        tables.push(read(&own)?);
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first_fragment: u32, first_time: u64, duration: u32) -> FragmentRun {
        FragmentRun { first_fragment, first_time, duration, discontinuity: None }
    }

    fn gap(first_fragment: u32, first_time: u64, kind: Discontinuity) -> FragmentRun {
        FragmentRun { first_fragment, first_time, duration: 0, discontinuity: Some(kind) }
    }

    fn bootstrap(segments: &[(u32, u32)], runs: Vec<FragmentRun>) -> Bootstrap {
        let segment_runs = segments.iter().map(|(first_segment, fragments_per_segment)| SegmentRun {
            first_segment: *first_segment,
            fragments_per_segment: *fragments_per_segment,
        });
        Bootstrap {
            timescale: 1_000,
            segment_tables: vec![SegmentTable { runs: segment_runs.collect(), ..SegmentTable::default() }],
            fragment_tables: vec![FragmentTable { timescale: 1_000, runs, ..FragmentTable::default() }],
            ..Bootstrap::default()
        }
    }

    /// Segment and number of each fragment.
    fn names(bootstrap: &Bootstrap) -> Vec<(u32, u32)> {
        let fragments = bootstrap.fragments().unwrap();
        fragments.iter().map(|fragment| (fragment.segment, fragment.number)).collect()
    }

    #[test]
    fn a_bootstrap_is_written_and_read() {
        let mut own = bootstrap(&[(1, 5), (3, 2)], vec![run(1, 0, 4_000), gap(9, 0, Discontinuity::End)]);
        own.box_version = 1;
        (own.version, own.profile, own.is_live, own.is_update) = (7, 1, true, true);
        (own.current_time, own.smpte_offset) = (u64::MAX, 1 << 40);
        own.movie = "film".to_owned();
        own.servers = vec!["http://a.test/".to_owned(), String::new()];
        own.qualities = vec!["_high".to_owned()];
        own.metadata = "ü".to_owned();
        own.segment_tables[0].qualities = vec!["q".to_owned()];
        own.fragment_tables.push(FragmentTable { box_version: 1, timescale: 1, ..FragmentTable::default() });
        let mut bytes = Vec::new();
        own.write(&mut bytes);
        assert_eq!(Bootstrap::parse(&bytes).unwrap(), own);
        for cut in 0..bytes.len() {
            assert!(Bootstrap::parse(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    /// Written by hand from the specification, with a box size of 64 bits, so that reader and writer cannot
    /// share a mistake.
    #[test]
    fn bytes_of_the_specification_are_read() {
        let mut table = b"\0\0\0\x19asrt\0\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\x05".to_vec();
        table.push(1);
        table.extend(b"\0\0\0\x01afrt\0\0\0\0\0\0\0\x57\0\0\0\0\0\0\x03\xe8\0\0\0\0\x03");
        table.extend(b"\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\x0f\xa0");
        table.extend(b"\0\0\0\x04\0\0\0\0\0\0\x2e\xe0\0\0\0\0\x01");
        table.extend(b"\0\0\0\x06\0\0\0\0\0\0\x2e\xe0\0\0\x07\xd0");
        // The size of the table: what precedes the entries, and these.
        let size_at = 26 + 8;
        let size = u64::try_from(table.len() - 26).unwrap();
        table[size_at..size_at + 8].copy_from_slice(&size.to_be_bytes());
        let mut body = b"\0\0\0\0\0\0\0\x02\x00\0\0\x03\xe8".to_vec();
        body.extend(18_000_u64.to_be_bytes());
        body.extend(0_u64.to_be_bytes());
        body.extend(b"\0\0\0\0\0\x01");
        body.extend(table);
        let mut bytes = b"\0\0\0\x01abst".to_vec();
        bytes.extend((body.len() as u64 + 16).to_be_bytes());
        bytes.extend(body);
        let own = Bootstrap::parse(&bytes).unwrap();
        assert_eq!((own.version, own.is_live, own.current_time), (2, false, 18_000));
        // Numbers 4 and 5 are a gap; 6, 7 and 8 last 2 s each, until the current time of 18 s.
        assert_eq!(names(&own), [(1, 1), (1, 2), (1, 3), (2, 6), (2, 7), (2, 8)]);
        let found = own.find(7).unwrap().unwrap();
        assert_eq!((found.start_ns, found.duration_ns), (14_000_000_000, 2_000_000_000));
        assert_eq!(own.find(4).unwrap(), None);
        assert_eq!((own.segment_of(4), own.segment_of(6)), (Some(1), Some(2)));
    }

    #[test]
    fn gaps_are_no_fragments() {
        use Discontinuity::{End, Numbers, NumbersAndTimes, Times};
        for (runs, expected) in [
            // The run after a gap of times continues the numbers.
            (vec![run(1, 0, 10), gap(3, 20, Times), run(3, 50, 10), gap(5, 70, End)], vec![1, 2, 3, 4]),
            (vec![run(1, 0, 10), gap(3, 20, Numbers), run(7, 20, 10), gap(8, 30, End)], vec![1, 2, 7]),
            (vec![run(1, 0, 10), gap(2, 10, NumbersAndTimes), run(9, 80, 10), gap(10, 0, End)], vec![1, 9]),
            // A gap that does not say where it begins: the times tell.
            (vec![run(1, 0, 10), gap(0, 0, Numbers), run(7, 20, 10), gap(8, 0, End)], vec![1, 2, 7]),
            (vec![run(1, 0, 10), gap(7, 20, Numbers), run(7, 20, 10), gap(8, 0, End)], vec![1, 2, 7]),
            // Nothing follows the end.
            (vec![run(1, 0, 10), gap(2, 0, End), run(5, 0, 10)], vec![1]),
            (vec![gap(0, 0, End)], vec![]),
            (vec![], vec![]),
        ] {
            let own = bootstrap(&[(1, 100)], runs.clone());
            let numbers: Vec<u32> = names(&own).iter().map(|(_, number)| *number).collect();
            assert_eq!(numbers, expected, "{runs:?}");
        }
    }

    #[test]
    fn the_last_run_ends_with_the_time_that_exists() {
        let of = |is_live, current_time, segments| {
            let runs = vec![run(1, 0, 4_000)];
            Bootstrap { is_live, current_time, ..bootstrap(segments, runs) }
        };
        let count = |own: &Bootstrap| own.fragments().unwrap().len();
        // On demand, the last fragment is shorter than its run says; rounding is not a fragment.
        assert_eq!(count(&of(false, 10_000, &[(1, 100)])), 3);
        assert_eq!(count(&of(false, 8_016, &[(1, 100)])), 2);
        assert_eq!(count(&of(false, 0, &[(1, 100)])), 1);
        // The table of segments decides between two numbers.
        assert_eq!(count(&of(false, 8_016, &[(1, 3)])), 3);
        assert_eq!(count(&of(false, 10_000, &[(1, 2)])), 2);
        // A live fragment exists once it is complete.
        assert_eq!(count(&of(true, 11_900, &[(1, u32::MAX)])), 2);
    }

    #[test]
    fn segments_cover_numbers() {
        let end = gap(24, 0, Discontinuity::End);
        let own = bootstrap(&[(1, 5), (3, 2), (5, 10)], vec![run(1, 0, 10), end]);
        let segments: Vec<u32> = names(&own).iter().map(|(segment, _)| *segment).collect();
        let expected = [[1; 5], [2; 5]].concat();
        assert_eq!(segments[..10], expected);
        assert_eq!(segments[10..], [vec![3; 2], vec![4; 2], vec![5; 9]].concat());
        // A live window whose first segments are no longer listed.
        let own = bootstrap(&[(7, 2)], vec![run(13, 0, 10), gap(16, 0, Discontinuity::End)]);
        assert_eq!(names(&own), [(7, 13), (7, 14), (8, 15)]);
        let own = bootstrap(&[(1, 2)], vec![run(13, 0, 10), gap(16, 0, Discontinuity::End)]);
        assert_eq!(names(&own), [(7, 13), (7, 14), (8, 15)]);
    }

    /// The window of a live stream may begin with a gap, in the segment that it lists first.
    #[test]
    fn a_gap_before_the_first_fragment_belongs_to_its_segment() {
        use Discontinuity::{End, Numbers};
        let end = gap(18, 0, End);
        let own = bootstrap(&[(3, 5)], vec![gap(11, 0, Numbers), run(13, 0, 10), end]);
        assert_eq!(names(&own), [(3, 13), (3, 14), (3, 15), (4, 16), (4, 17)]);
        assert_eq!((own.segment_of(11), own.segment_of(16)), (Some(3), Some(4)));
        // This gap does not say where it begins.
        let own = bootstrap(&[(3, 5)], vec![gap(0, 0, Numbers), run(13, 0, 10), end]);
        assert_eq!(names(&own), [(3, 13), (3, 14), (3, 15), (3, 16), (3, 17)]);
    }

    #[test]
    fn a_live_run_that_has_just_begun_has_no_fragment() {
        let runs = vec![run(1, 0, 4_000), gap(3, 8_000, Discontinuity::Numbers), run(7, 8_000, 4_000)];
        let numbers = |current_time| {
            let own = Bootstrap { is_live: true, current_time, ..bootstrap(&[(1, 100)], runs.clone()) };
            names(&own).iter().map(|(_, number)| *number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(8_000), [1, 2], "a gap at the edge of the window");
        assert_eq!(numbers(11_900), [1, 2]);
        assert_eq!(numbers(12_000), [1, 2, 7]);
    }

    #[test]
    fn fragments_become_runs_and_these_the_fragments() {
        let span = |number, start, duration| FragmentSpan { number, start, duration };
        let spans = [
            span(1, 0, 4_000),
            span(2, 4_000, 4_000),
            span(3, 8_000, 3_000),
            span(5, 11_000, 3_000),
            span(6, 20_000, 3_000),
            span(9, 30_000, 1_000),
        ];
        let runs = runs_of(&spans, true);
        let kinds: Vec<_> = runs.iter().filter_map(|run| run.discontinuity).collect();
        use Discontinuity::{End, Numbers, NumbersAndTimes, Times};
        assert_eq!(kinds, [Numbers, Times, NumbersAndTimes, End]);
        let own = bootstrap(&[(1, 3)], runs);
        let found: Vec<_> = own
            .fragments()
            .unwrap()
            .iter()
            .map(|own| {
                span(
                    own.number,
                    own.start_ns / 1_000_000,
                    u32::try_from(own.duration_ns / 1_000_000).unwrap(),
                )
            })
            .collect();
        assert_eq!(found, spans);
        assert_eq!(own.fragments().unwrap()[5].segment, 3);
    }

    #[test]
    fn damaged_tables_are_errors() {
        let own = bootstrap(&[(1, 5)], vec![run(5, 0, 10), run(5, 0, 10)]);
        let error = own.fragments().unwrap_err().to_string();
        assert!(error.contains("the run from fragment 5 does not follow"), "{error}");
        let own = bootstrap(&[(1, 5)], vec![run(1, 0, 10), gap(u32::MAX, 0, Discontinuity::End)]);
        let error = own.fragments().unwrap_err().to_string();
        assert!(error.contains("more than 200000 fragments"), "{error}");
        let error = bootstrap(&[], vec![run(1, 0, 10)]).fragments().unwrap_err().to_string();
        assert!(error.contains("no segment for fragment 1"), "{error}");
        let error = Bootstrap::default().fragments().unwrap_err().to_string();
        assert!(error.contains("no table `asrt`"), "{error}");

        let mut bytes = Vec::new();
        bootstrap(&[(1, 5)], vec![gap(1, 0, Discontinuity::Numbers)]).write(&mut bytes);
        *bytes.last_mut().unwrap() = 4;
        let error = Bootstrap::parse(&bytes).unwrap_err().to_string();
        assert!(error.contains("the discontinuity indicator 4 is not one from 0 to 3"), "{error}");
        bytes[8] = 2;
        let error = Bootstrap::parse(&bytes).unwrap_err().to_string();
        assert!(error.contains("has version 2"), "{error}");
    }
}
