//! The paths of a loop as a list, for programs that draw paths but no parts of paths.

use std::borrow::Cow;

use model::options::{Order, RequestOptions};
use model::url_pattern::every_path;

/// A list has at most this many paths.
const MOST_LISTED: u64 = 50_000;

/// The paths that an external client requests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListedPaths<'a> {
    /// At least one.
    pub(crate) paths: Cow<'a, [String]>,
    /// The order in which it requests them.
    pub(crate) order: Order,
}

impl<'a> ListedPaths<'a> {
    /// The paths of a loop, with every path that its random parts stand for.
    ///
    /// # Errors
    /// Why a list cannot stand for them: the end of a sentence that the client's name begins.
    pub(crate) fn of(paths: &'a [String], options: &RequestOptions) -> Result<ListedPaths<'a>, String> {
        let order = Order::of(options.random_order);
        if !options.random_parts {
            return Ok(ListedPaths { paths: Cow::Borrowed(paths), order });
        }
        if paths.len() > 1 && order == Order::InTurn {
            let problem =
                "cannot request paths in turn and draw their random parts; add `order = \"random\"`";
            return Err(problem.to_owned());
        }
        let all = every_path(paths, MOST_LISTED).ok_or_else(|| {
            format!(
                "gets paths with random parts as a list: at most {MOST_LISTED}, and as many for each path; use \
                 fewer, or the client `h123`"
            )
        })?;
        Ok(ListedPaths { paths: Cow::Owned(all), order: Order::Random })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(paths: &[&str], random_order: bool) -> Result<(Vec<String>, Order), String> {
        let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
        let random_parts = paths.iter().any(|path| path.contains("{random:"));
        let options = RequestOptions { random_order, random_parts, ..RequestOptions::default() };
        ListedPaths::of(&paths, &options).map(|listed| (listed.paths.into_owned(), listed.order))
    }

    #[test]
    fn random_parts_become_a_list_in_random_order() {
        let expected = vec!["/1/a".to_owned(), "/2/a".to_owned()];
        assert_eq!(listed(&["/{random:1-2}/a"], false), Ok((expected, Order::Random)));
        assert_eq!(listed(&["/a", "/b"], false).unwrap().1, Order::InTurn);
        assert_eq!(listed(&["/{random:1-7000}/a", "/{random:1-7000}/b"], true).unwrap().0.len(), 14_000);
    }

    #[test]
    fn what_a_list_cannot_stand_for_is_refused() {
        let refused = |paths: &[&str], random_order| listed(paths, random_order).unwrap_err();
        assert!(refused(&["/{random:1-2}/a", "/b"], false).starts_with("cannot request paths in turn"));
        assert!(
            refused(&["/{random:1-2}/a", "/b"], true).starts_with("gets paths with random parts as a list")
        );
        assert!(refused(&["/{random:1-50001}"], true).contains("at most 50000"));
    }
}
