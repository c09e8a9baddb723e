//! Names: types whose values have one, and the error of an unknown name, with the nearest known one.

/// Longer lists of known names are cut; the keys of a study fit.
const MOST_LISTED: usize = 40;
/// The fewest letters that suggest a name by its beginning.
const SHORTEST_BEGINNING: usize = 3;

/// A type whose values have names in files, options and tables; [`named!`](crate::named!) declares one.
pub trait Named: Sized + Copy {
    /// The value of a name.
    ///
    /// # Errors
    /// There is none: the known names.
    fn from_name(text: &str) -> Result<Self, String>;
}

/// Declares an enum whose values have names: `named! { "a backend"; pub enum Backend { Netem = "netem", } }`.
///
/// The enum has `ALL` and `name`, and `Display`, `FromStr` and serde use the names.
#[macro_export]
macro_rules! named {
    ($noun:literal; $(#[$meta:meta])* pub enum $type:ident {
        $($(#[$doc:meta])* $value:ident = $name:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $type { $($(#[$doc])* #[serde(rename = $name)] $value),* }

        impl $type {
            /// Every value, in the order in which tables show them.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$value),*];

            /// The name in files, options and tables.
            pub const fn name(self) -> &'static str {
                match self { $($type::$value => $name),* }
            }
        }

        impl $crate::named::Named for $type {
            fn from_name(text: &str) -> Result<$type, String> {
                let found = $type::ALL.into_iter().find(|value| value.name() == text);
                found.ok_or_else(|| $crate::named::unknown(text, $noun, &$type::ALL.map($type::name)))
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<$type, String> {
                $crate::named::Named::from_name(text)
            }
        }
    };
}

/// An error such as ```lann` is not a network; did you mean `lan`? The choices are lan, tokyo``.
pub fn unknown<S: AsRef<str>>(found: &str, noun: &str, known: &[S]) -> String {
    let names: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    let listed = names[..names.len().min(MOST_LISTED)].join(", ");
    let more = if names.len() > MOST_LISTED { ", …" } else { "" };
    let choices = match names.as_slice() {
        [] => "there is none".to_owned(),
        [only] => format!("the only choice is {only}"),
        _ => format!("the choices are {listed}{more}"),
    };
    match nearest(found, &names) {
        None => format!("`{found}` is not {noun}; {choices}"),
        Some(name) => format!("`{found}` is not {noun}; did you mean `{name}`? T{}", &choices[1..]),
    }
}

/// The only known name that begins with `found`, or the one that needs the fewest edits, at most a third of
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

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal string
/// alignment).
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
            "`lann` is not a network; did you mean `lan`? The choices are lan, tokyo"
        );
        assert_eq!(unknown("x1", "a server", &["origin"]), "`x1` is not a server; the only choice is origin");
        assert_eq!(unknown::<&str>("x1", "a server", &[]), "`x1` is not a server; there is none");
    }
}
