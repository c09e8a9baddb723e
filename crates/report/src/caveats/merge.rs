//! Merges lines about many cells: equal ones, and those that differ in numbers only, with the range of the
//! numbers.

use super::{Lost, Place};

/// This many lines of one shape are shown unchanged.
const MAX_SAME_SHAPE: usize = 3;
/// This many cells are named in a line about more.
const MAX_NAMED: usize = 6;

/// The measurements of a check: cells with the same measurement in one line and, if there are many, cells
/// whose measurements differ in numbers only in one line with their range. `all` is the number of cells of
/// the study.
pub(crate) fn places(places: &[Place], all: usize) -> Vec<Place> {
    let same =
        grouped(places, |one, other| one.measured == other.measured && one.threshold == other.threshold);
    let has_same_shape = |one: &Vec<&Place>, other: &Vec<&Place>| shape(one[0]) == shape(other[0]);
    let groups = grouped(&same, has_same_shape);
    let mut lines = Vec::new();
    for group in groups {
        if group.len() <= MAX_SAME_SHAPE {
            lines.extend(group.iter().map(|same| line(same, all)));
        } else {
            let members: Vec<&Place> = group.into_iter().flatten().copied().collect();
            lines.push(line(&members, all));
        }
    }
    lines
}

/// Cells that were lost for the same reasons, in one line.
pub(crate) fn lost(cells: &[Lost], all: usize) -> Vec<Lost> {
    let same = grouped(cells, |one, other| one.status == other.status && one.reasons == other.reasons);
    let line = |same: Vec<&Lost>| {
        let names: Vec<&str> = same.iter().map(|lost| lost.cell.as_str()).collect();
        Lost { cell: named(&names, all), ..same[0].clone() }
    };
    same.into_iter().map(line).collect()
}

/// Groups equal items, in the order of the first of each group.
fn grouped<T>(items: &[T], is_same: impl Fn(&T, &T) -> bool) -> Vec<Vec<&T>> {
    let mut groups: Vec<Vec<&T>> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|group| is_same(group[0], item)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// The line of places of one shape.
fn line(places: &[&Place], all: usize) -> Place {
    let names: Vec<&str> = places.iter().map(|place| place.cell.as_str()).collect();
    let range =
        |text: fn(&Place) -> &str| ranged(&places.iter().map(|place| text(place)).collect::<Vec<_>>());
    Place {
        cell: named(&names, all),
        measured: range(|place| &place.measured),
        threshold: range(|place| &place.threshold),
    }
}

/// The names of cells or, if there are many, their number and the first names.
pub(crate) fn named(names: &[&str], all: usize) -> String {
    match names.len() {
        count if count == all && count > 1 => format!("all {count} cells"),
        count if count > MAX_NAMED + 1 => {
            let (first, more) = (names[..MAX_NAMED].join(", "), count - MAX_NAMED);
            format!("{count} of {all} cells: {first} and {more} more")
        }
        _ => names.join(", "),
    }
}

/// A text in parts: words, and the numbers between them. A digit in a word (`h2`) and the number of a run
/// belong to the words.
fn parts(text: &str) -> Vec<(&str, bool)> {
    let mut parts = Vec::new();
    let (mut begin, mut rest) = (0, 0);
    while let Some(offset) = text[rest..].find(|c: char| c.is_ascii_digit()) {
        let from = rest + offset;
        let length =
            text[from..].find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len() - from);
        let number = text[from..from + length].trim_end_matches('.');
        let to = from + number.len();
        let before = &text[begin..from];
        let is_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
            || ["run ", "runs ", "cell "].iter().any(|word| before.ends_with(word))
            || number.matches('.').count() > 1;
        rest = from + length;
        if !is_word {
            parts.push((before, false));
            parts.push((number, true));
            begin = to;
        }
    }
    parts.push((&text[begin..], false));
    parts
}

/// Both texts of a place without their numbers.
fn shape(place: &Place) -> Vec<Vec<&str>> {
    let words =
        |text| parts(text).into_iter().filter(|(_, is_number)| !is_number).map(|(part, _)| part).collect();
    vec![words(&place.measured), words(&place.threshold)]
}

/// Texts of one shape as one text, with ranges of the numbers that differ.
fn ranged(texts: &[&str]) -> String {
    let Some(first) = texts.first() else { return String::new() };
    let all: Vec<Vec<(&str, bool)>> = texts.iter().map(|text| parts(text)).collect();
    let mut out = String::new();
    for (place, (part, is_number)) in parts(first).into_iter().enumerate() {
        let mut values: Vec<&str> = all.iter().filter_map(|parts| Some(parts.get(place)?.0)).collect();
        values.sort_by(|one, other| value(one).total_cmp(&value(other)));
        match (is_number, values.as_slice()) {
            (true, [least, .., greatest]) if least != greatest => {
                out.push_str(&format!("{least} to {greatest}"))
            }
            _ => out.push_str(part),
        }
    }
    out
}

fn value(number: &str) -> f64 {
    number.parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(measured: &[&str]) -> Vec<Place> {
        let cells = (1..).zip(measured);
        let place = |(cell, measured): (u32, &&str)| Place {
            cell: format!("c{cell}"),
            measured: (*measured).to_owned(),
            threshold: "at most 5%".to_owned(),
        };
        cells.map(place).collect()
    }

    fn lines(measured: &[&str], all: usize) -> Vec<String> {
        places(&of(measured), all).into_iter().map(|p| format!("{} ({})", p.cell, p.measured)).collect()
    }

    #[test]
    fn lines_that_differ_in_numbers_become_a_range() {
        let shares = [
            "57.7% was others'",
            "46.3% was others'",
            "9.8% was others'",
            "13.5% was others'",
            "13.5% was others'",
        ];
        assert_eq!(lines(&shares, 9), ["c1, c2, c3, c4, c5 (9.8 to 57.7% was others')"]);
        assert_eq!(lines(&shares, 5), ["all 5 cells (9.8 to 57.7% was others')"]);
        assert_eq!(lines(&shares[..3], 9).len(), 3, "few are shown unchanged");
        assert_eq!(lines(&["3 runs", "3 runs"], 9), ["c1, c2 (3 runs)"]);
    }

    #[test]
    fn lines_that_differ_in_words_stay_apart() {
        let mixed = ["1 of 5 by h2", "2 of 5 by h2", "1 of 5 by h3", "3 of 5 by h2", "4 of 6 by h2"];
        assert_eq!(lines(&mixed, 9), ["c1, c2, c4, c5 (1 to 4 of 5 to 6 by h2)", "c3 (1 of 5 by h3)"]);
        let runs = ["run 1 at 2%", "run 2 at 3%", "run 3 at 4%", "run 4 at 5%"];
        assert_eq!(lines(&runs, 9).len(), 4, "the number of a run is its name");
        assert_eq!(
            parts("10 µs. TLS 1.3, 1.2.3"),
            [("", false), ("10", true), (" µs. TLS ", false), ("1.3", true), (", 1.2.3", false)]
        );
    }

    #[test]
    fn many_cells_are_counted() {
        let same = vec!["3 runs"; 20];
        assert_eq!(lines(&same, 30), ["20 of 30 cells: c1, c2, c3, c4, c5, c6 and 14 more (3 runs)"]);
        let cell = |name: &str| Lost { cell: name.to_owned(), status: "failed", reasons: "died".to_owned() };
        let cells = [cell("a"), cell("b")];
        assert_eq!(lost(&cells, 5)[0].cell, "a, b");
        assert_eq!(lost(&cells, 2), [cell("all 2 cells")]);
    }
}
