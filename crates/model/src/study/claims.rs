//! `[[claim]]`: what the study assumes, as written and resolved.

use super::factors::{LEVEL_KEYS, resolve_level};
use super::{Library, Study};
use crate::claim::{Bound, Claim, ClaimTest};
use crate::class::RequestClass;
use crate::error::InputError;
use crate::keys;
use crate::level::Level;
use crate::named::{Named, unknown};
use crate::number::float;
use crate::reader::{Key, Placed, Table};
use crate::statistic::Statistic;
use crate::units;

pub(super) const KEYS: &[Key] = keys! {
    "text", "text", "required", r#""The runs may be pooled.""#, "The claim in a sentence; not empty.";
    "kind", "text", "required", r#""pooled""#, "`pooled`, `best`, `script`, `scale`, `impaired` or `value`.";
};
pub(super) const BEST_KEYS: &[Key] = keys! {
    "level", "table", "required", r#"{ variant = "h2" }"#, "The level that is the best.";
    "among", "list of texts", "all of its factor", r#"["h1s", "h3"]"#, "The other levels that it is the best of.";
    "by", "list of texts", "required", r#"["median", "iqr"]"#,
        "Statistics of the primary metric: `median`, `mean`, `iqr`, `p90`, `p95`, `p99`, `p999`.";
};
pub(super) const SCRIPT_KEYS: &[Key] = keys! {
    "trained_on", "table", "required", r#"{ variant = "h2" }"#, "The level that the timing script was recorded with.";
};
pub(super) const SCALE_KEYS: &[Key] = keys! {
    "factor", "text", "required", r#""workload""#, "The factor of the levels.";
    "levels", "list of texts", "required", r#"["viewers-91", "viewers-10"]"#,
        "At least two levels; the first represents the others.";
};
pub(super) const VALUE_KEYS: &[Key] = keys! {
    "metric", "text", "the primary one", r#""page_load_time""#, "A [metric](#metrics).";
    "statistic", "text", "`\"median\"`", r#""p99""#, "A statistic, as in `by`.";
    "of", "table", "all cells", r#"{ variant = "h2" }"#, "The levels of the cells.";
    "against", "table", "none", r#"{ variant = "h1s" }"#,
        "One level: the bounds are of the ratio to the value of the cell with this level.";
    "least", "duration, size, number, or round trips", "none", r#""1.9rtt""#, "The lower bound.";
    "most", "duration, size, number, or round trips", "none", r#""120ms""#,
        "The upper bound. One of `least` and `most` is required.";
};

const ROUND_TRIPS: &str = "rtt";

/// A claim as written: its levels and its metric are still names.
#[derive(Clone, Debug)]
pub(super) struct ClaimEntry {
    text: String,
    kind: Kind,
}

/// A factor and its level, such as `variant = "h2"`.
pub(super) type NamedLevel = (Placed<String>, Placed<String>);

#[derive(Clone, Debug)]
enum Kind {
    Pooled,
    Best {
        level: NamedLevel,
        among: Vec<Placed<String>>,
        by: Vec<Statistic>,
    },
    Script {
        trained_on: NamedLevel,
    },
    Scale {
        factor: Placed<String>,
        levels: Vec<Placed<String>>,
    },
    Impaired,
    Value {
        metric: Option<Placed<String>>,
        statistic: Statistic,
        cells: Vec<NamedLevel>,
        against: Option<NamedLevel>,
        least: Option<Bound>,
        most: Option<Bound>,
    },
}

/// Every `[[claim]]`, in the order of the file.
pub(super) fn read(root: &Table<'_>) -> Result<Vec<ClaimEntry>, InputError> {
    root.tables("claim")?.into_iter().map(read_claim).collect()
}

fn read_claim(table: Table<'_>) -> Result<ClaimEntry, InputError> {
    let table = table.knowing(KEYS);
    let text = table.required("text", Table::text)?.value;
    let kind = table.required("kind", Table::string)?;
    let own = match kind.value.as_str() {
        "best" => BEST_KEYS,
        "script" => SCRIPT_KEYS,
        "scale" => SCALE_KEYS,
        "value" => VALUE_KEYS,
        "pooled" | "impaired" => &[],
        other => {
            let problem = unknown(other, "a kind of claim", &ClaimTest::KINDS);
            return Err(kind.error(format!("`kind`: {problem}")));
        }
    };
    let table = table.with_keys(KEYS.iter().chain(own))?;
    let kind = match kind.value.as_str() {
        "best" => Kind::Best {
            level: read_level(&table, "level")?,
            among: table.some_strings("among")?.map(|among| among.value).unwrap_or_default(),
            by: read_statistics(&table)?,
        },
        "script" => Kind::Script { trained_on: read_level(&table, "trained_on")? },
        "scale" => {
            let factor = table.required("factor", Table::string)?;
            let levels = table.required("levels", Table::strings)?;
            if levels.value.len() < 2 {
                return Err(levels
                    .error("`levels` has fewer than two levels; add the levels that the first stands for"));
            }
            Kind::Scale { factor, levels: levels.value }
        }
        "value" => read_value(&table)?,
        "pooled" => Kind::Pooled,
        _ => Kind::Impaired,
    };
    Ok(ClaimEntry { text, kind })
}

fn read_value(table: &Table<'_>) -> Result<Kind, InputError> {
    let bound = |key| Ok(table.parsed(key, parse_bound)?.map(|bound| bound.value));
    let (least, most): (Option<Bound>, Option<Bound>) = (bound("least")?, bound("most")?);
    if least.is_none() && most.is_none() {
        return Err(table.error("[[claim]] has neither `least` nor `most`; add one of them"));
    }
    let cells = table.table("of")?.map(|of| of.knowing(LEVEL_KEYS).level_entries()).transpose()?;
    let against = table.table("against")?.map(|_| read_level(table, "against")).transpose()?;
    let in_round_trips = |bound: &Bound| matches!(bound, Bound::RoundTrips(_));
    if against.is_some() && [least, most].iter().flatten().any(in_round_trips) {
        return Err(
            table.error("`against` makes a ratio, which has no round trips; write bounds such as `1.05`")
        );
    }
    let statistic = table.named("statistic")?.map_or(Statistic::Median, |statistic| statistic.value);
    Ok(Kind::Value {
        metric: table.string("metric")?,
        statistic,
        cells: cells.unwrap_or_default(),
        against,
        least,
        most,
    })
}

/// One level such as `level = { variant = "h2" }`.
pub(super) fn read_level(table: &Table<'_>, key: &str) -> Result<NamedLevel, InputError> {
    let inner = table.required(key, Table::table)?;
    let mut levels = inner.level_entries()?;
    match (levels.pop(), levels.len()) {
        (Some(level), 0) => Ok(level),
        (last, others) => {
            let count = others + usize::from(last.is_some());
            let problem =
                format!("`{key}` has {count} levels; write one, such as `{key} = {{ variant = \"h2\" }}`");
            Err(inner.error(problem))
        }
    }
}

fn read_statistics(table: &Table<'_>) -> Result<Vec<Statistic>, InputError> {
    let names = table.required("by", Table::some_strings)?.value;
    names.into_iter().map(|name| Ok(name.map(|name| Statistic::from_name(&name))?.value)).collect()
}

/// `120ms`, `2rtt`, `64kB` or `0.99`.
pub(super) fn parse_bound(text: &str) -> Result<Bound, String> {
    let text = text.trim();
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    if let Some(trips) = text.strip_suffix(ROUND_TRIPS) {
        let trips = number(trips);
        let trips = trips
            .ok_or_else(|| format!("`{text}` is not a number of round trips; write one such as `2rtt`"))?;
        return Ok(Bound::RoundTrips(trips));
    }
    let quantity =
        || units::parse_duration_ns(text).or_else(|_| units::parse_size_bytes(text)).ok().map(float);
    let value = number(text).or_else(quantity).map(Bound::Plain);
    value.ok_or_else(|| {
        format!("`{text}` is not a value; write one such as `120ms`, `2rtt`, `64kB` or `0.99`")
    })
}

/// The claims of a study with their levels and metrics resolved.
pub(super) fn resolve(
    study: &Study,
    classes: &[RequestClass],
    library: &impl Library,
) -> Result<Vec<Claim>, InputError> {
    let level =
        |(factor, value): &NamedLevel| Ok::<Level, InputError>(resolve_level(study, "", factor, value)?.0);
    let resolve_one = |written: &ClaimEntry| {
        let holds_if = match &written.kind {
            Kind::Pooled => ClaimTest::Pooled,
            Kind::Impaired => ClaimTest::Impaired,
            Kind::Best { level: named, among, by } => {
                let among = among.iter().map(|value| level(&(named.0.clone(), value.clone())));
                let among = among.collect::<Result<_, _>>()?;
                ClaimTest::Best { level: level(named)?, among, by: by.clone() }
            }
            Kind::Script { trained_on } => ClaimTest::Script { trained_on: level(trained_on)? },
            Kind::Scale { factor, levels } => {
                let levels = levels.iter().map(|value| level(&(factor.clone(), value.clone())));
                ClaimTest::Scale { levels: levels.collect::<Result<_, _>>()? }
            }
            Kind::Value { metric, statistic, cells, against, least, most } => {
                if let Some(metric) = metric {
                    super::metric::check_exists(metric, classes, library)?;
                }
                ClaimTest::Value {
                    metric: metric.as_ref().unwrap_or(&study.metric).value.clone(),
                    statistic: *statistic,
                    levels: cells.iter().map(level).collect::<Result<_, _>>()?,
                    against: against.as_ref().map(level).transpose()?,
                    least: *least,
                    most: *most,
                }
            }
        };
        Ok(Claim { text: written.text.clone(), holds_if })
    };
    study.claims.iter().map(resolve_one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SHORT, parse};
    use super::*;

    fn claims(text: &str) -> Result<Vec<Claim>, String> {
        parse(&format!("{SHORT}\n{text}")).map(|plan| plan.claims)
    }

    fn only(text: &str) -> ClaimTest {
        let text = format!("[[claim]]\ntext = \"So it is.\"\n{text}");
        let mut claims = claims(&text).unwrap();
        assert_eq!((claims.len(), claims[0].text.as_str()), (1, "So it is."));
        claims.remove(0).holds_if
    }

    fn level(factor: &str, value: &str) -> Level {
        Level { factor: factor.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn every_kind_is_read_and_resolved() {
        assert_eq!(only("kind = \"pooled\""), ClaimTest::Pooled);
        assert_eq!(only("kind = \"impaired\""), ClaimTest::Impaired);
        assert_eq!(
            only("kind = \"best\"\nlevel = { variant = \"h3\" }\nby = [\"median\", \"iqr\"]"),
            ClaimTest::Best {
                level: level("variant", "h3"),
                among: Vec::new(),
                by: vec![Statistic::Median, Statistic::Iqr]
            }
        );
        assert_eq!(
            only("kind = \"best\"\nlevel = { variant = \"h3\" }\namong = [\"h1s\"]\nby = [\"iqr\"]"),
            ClaimTest::Best {
                level: level("variant", "h3"),
                among: vec![level("variant", "h1s")],
                by: vec![Statistic::Iqr]
            }
        );
        assert_eq!(
            only("kind = \"script\"\ntrained_on = { variant = \"h3\" }"),
            ClaimTest::Script { trained_on: level("variant", "h3") }
        );
        assert_eq!(
            only("kind = \"scale\"\nfactor = \"variant\"\nlevels = [\"h3\", \"h1s\"]"),
            ClaimTest::Scale { levels: vec![level("variant", "h3"), level("variant", "h1s")] }
        );
        assert_eq!(
            only(
                "kind = \"value\"\nof = { variant = \"h3\", network = \"lan\" }\nleast = \"2 rtt\"\nmost = \"120ms\""
            ),
            ClaimTest::Value {
                metric: "page_load_time".to_owned(),
                statistic: Statistic::Median,
                levels: vec![level("variant", "h3"), level("network", "lan")],
                against: None,
                least: Some(Bound::RoundTrips(2.0)),
                most: Some(Bound::Plain(120e6)),
            }
        );
        assert_eq!(
            only(
                "kind = \"value\"\nof = { variant = \"h3\" }\nagainst = { variant = \"h1s\" }\nleast = \"1\""
            ),
            ClaimTest::Value {
                metric: "page_load_time".to_owned(),
                statistic: Statistic::Median,
                levels: vec![level("variant", "h3")],
                against: Some(level("variant", "h1s")),
                least: Some(Bound::Plain(1.0)),
                most: None,
            }
        );
    }

    #[test]
    fn every_kind_has_its_name() {
        for kind in ClaimTest::KINDS {
            let text = match kind {
                "best" => "level = { variant = \"h3\" }\nby = [\"p99\"]",
                "script" => "trained_on = { variant = \"h3\" }",
                "scale" => "factor = \"variant\"\nlevels = [\"h3\", \"h1s\"]",
                "value" => "metric = \"page_load_time\"\nstatistic = \"mean\"\nmost = \"0.5\"",
                _ => "",
            };
            assert_eq!(only(&format!("kind = \"{kind}\"\n{text}")).kind(), kind);
        }
    }

    #[test]
    fn faults_name_the_place() {
        for (text, expected) in [
            ("[[claim]]\nkind = \"pooled\"", ":17:1: [[claim]] has no `text`"),
            ("[[claim]]\ntext = \" \"\nkind = \"pooled\"", "`text` is empty"),
            ("[[claim]]\ntext = \"x\"", "[[claim]] has no `kind`"),
            ("[[claim]]\ntext = \"x\"\nkind = \"poled\"", ":19:8: `kind`: `poled` is not a kind of claim"),
            ("[[claim]]\ntext = \"x\"\nkind = \"pooled\"\nby = [\"iqr\"]", "`by` is not a key of [[claim]]"),
            ("[[claim]]\ntext = \"x\"\nkind = \"value\"", "[[claim]] has neither `least` nor `most`"),
            ("[[claim]]\ntext = \"x\"\nkind = \"value\"\nmost = \"soon\"", "`most`: `soon` is not a value"),
            (
                "[[claim]]\ntext = \"x\"\nkind = \"value\"\nmost = \"x rtt\"",
                "`x rtt` is not a number of round trips",
            ),
            (
                "[[claim]]\ntext = \"x\"\nkind = \"value\"\nmost = \"1s\"\nmetric = \"loadtime\"",
                "`metric`: `loadtime` is not a metric",
            ),
            (
                "[[claim]]\ntext = \"x\"\nkind = \"value\"\nmost = \"1s\"\nstatistic = \"mode\"",
                "`statistic`: `mode` is not a statistic",
            ),
            (
                "[[claim]]\ntext = \"x\"\nkind = \"value\"\nmost = \"1s\"\nof = { variant = \"h2\" }",
                "`h2` is not a level of `variant`",
            ),
            (
                "[[claim]]\ntext = \"x\"\nkind = \"value\"\nmost = \"1rtt\"\nagainst = { variant = \"h3\" }",
                "`against` makes a ratio",
            ),
            (
                "[[claim]]\ntext = \"x\"\nkind = \"best\"\nlevel = { variant = \"h3\" }\namong = [\"h2\"]\nby = [\"iqr\"]",
                "`h2` is not a level of `variant`",
            ),
            (
                "[[claim]]\ntext = \"x\"\nkind = \"script\"\ntrained_on = { variants = \"h3\" }",
                "`variants` is not a factor",
            ),
            (
                "[[claim]]\ntext = \"x\"\nkind = \"script\"\ntrained_on = {}",
                "`trained_on` has 0 levels; write one",
            ),
            (
                "[[claim]]\ntext = \"x\"\nkind = \"best\"\nlevel = { variant = \"h3\" }\nby = []",
                "`by` is an empty list",
            ),
            (
                "[[claim]]\ntext = \"x\"\nkind = \"scale\"\nfactor = \"variant\"\nlevels = [\"h3\"]",
                "`levels` has fewer than two",
            ),
        ] {
            let error = claims(text).unwrap_err();
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }
}
