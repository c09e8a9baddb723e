//! The known name nearest to a misspelt one.

/// At most so many known names are listed in an error.
const MOST_LISTED: usize = 24;
/// A beginning of so many letters is enough to guess the rest.
const SHORTEST_BEGINNING: usize = 3;

/// A sentence such as ``found `lann`, expected a network: lan, tokyo; did you mean `lan`?``.
pub fn unknown<S: AsRef<str>>(found: &str, noun: &str, known: &[S]) -> String {
    let names: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    if names.is_empty() {
        return format!("found `{found}`, expected {noun}, but there is none");
    }
    let listed = names[..names.len().min(MOST_LISTED)].join(", ");
    let more = if names.len() > MOST_LISTED { ", …" } else { "" };
    let suggestion = nearest(found, &names).map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    format!("found `{found}`, expected {noun}: {listed}{more}{suggestion}")
}

/// The one known name that begins with `found`, or that the fewest edits turn into it, where they are few against
/// its length.
fn nearest<'a>(found: &str, known: &[&'a str]) -> Option<&'a str> {
    let simple = |text: &str| text.to_lowercase().replace(['_', ' '], "-");
    let wanted = simple(found);
    let is_beginning = wanted.chars().count() >= SHORTEST_BEGINNING;
    let distance = |name: &str| {
        let name = simple(name);
        if is_beginning && name.starts_with(&wanted) { 0 } else { edits(&wanted, &name) }
    };
    let mut near: Vec<(usize, &str)> = known
        .iter()
        .map(|name| (distance(name), *name))
        .filter(|(distance, name)| *distance <= name.chars().count() / 3)
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    match near.as_slice() {
        [(first, _), (second, _), ..] if first == second => None,
        [(_, name), ..] => Some(name),
        [] => None,
    }
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal string alignment).
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for row in 1..=a.len() {
        let mut current = vec![row];
        for column in 1..=b.len() {
            let replaced = last[column - 1] + usize::from(a[row - 1] != b[column - 1]);
            let mut fewest = replaced.min(last[column] + 1).min(current[column - 1] + 1);
            if row > 1 && column > 1 && a[row - 1] == b[column - 2] && a[row - 2] == b[column - 1] {
                fewest = fewest.min(before_last[column - 2] + 1);
            }
            current.push(fewest);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("lan", "lan"), 0);
        assert_eq!(edits("nroth", "north"), 1);
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn suggests_only_what_is_near() {
        let known = ["lan", "north-carolina", "page_load_time"];
        assert_eq!(nearest("north_carolina", &known), Some("north-carolina"));
        assert_eq!(nearest("nort-carolna", &known), Some("north-carolina"));
        assert_eq!(nearest("pageloadtime", &known), Some("page_load_time"));
        assert_eq!(nearest("page", &known), Some("page_load_time"));
        assert_eq!(nearest("tokyo", &known), None);
        assert_eq!(nearest("wan", &["lan", "man"]), None, "both are as near");
        assert_eq!(
            unknown("lann", "a network", &["lan", "tokyo"]),
            "found `lann`, expected a network: lan, tokyo; did you mean `lan`?"
        );
        assert_eq!(unknown("x1", "a server", &["origin"]), "found `x1`, expected a server: origin");
    }
}
