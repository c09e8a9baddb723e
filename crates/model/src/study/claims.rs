//! `[[claim]]`: what the study takes for granted, as written and resolved.

use super::resolve::check_name;
use super::{Library, Study};
use crate::claim::{Bound, Claim, ClaimFigure, ClaimTest};
use crate::error::InputError;
use crate::nearest::unknown;
use crate::number::float;
use crate::plan::Level;
use crate::reader::{Placed, Table};
use crate::units;

const COMMON: [&str; 2] = ["says", "kind"];
const ROUND_TRIPS: &str = "rtt";

/// A claim as written: what its levels and metric mean is not known yet.
#[derive(Clone, Debug)]
pub(super) struct Written {
    says: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Pooled,
    Best {
        level: Placed<Vec<NamedLevel>>,
        by: Vec<ClaimFigure>,
    },
    Script {
        trained_on: Placed<Vec<NamedLevel>>,
    },
    Scale {
        factor: Placed<String>,
        levels: Placed<Vec<Placed<String>>>,
    },
    Impaired,
    Value {
        metric: Option<Placed<String>>,
        figure: ClaimFigure,
        cells: Vec<NamedLevel>,
        least: Option<Bound>,
        most: Option<Bound>,
    },
}

/// `variant = "h2"`.
#[derive(Clone, Debug)]
struct NamedLevel {
    factor: Placed<String>,
    value: Placed<String>,
}

/// Every `[[claim]]`, in the order of the file.
pub(super) fn read(root: &Table<'_>) -> Result<Vec<Written>, InputError> {
    root.tables("claim")?.into_iter().map(read_claim).collect()
}

fn read_claim(table: Table<'_>) -> Result<Written, InputError> {
    let says = table.string("says", "The runs may be pooled.")?;
    let says = says.ok_or_else(|| table.missing("says", "says = \"The runs may be pooled.\""))?;
    if says.value.trim().is_empty() {
        return Err(says.error("`says`: found nothing, expected the claim in a sentence"));
    }
    let kind = table.string("kind", "pooled")?;
    let kind = kind.ok_or_else(|| table.missing("kind", "kind = \"pooled\""))?;
    let keys = |own: &[&'static str]| [&COMMON[..], own].concat();
    let kind = match kind.value.as_str() {
        "pooled" => table.with_keys(&keys(&[])).map(|_| Kind::Pooled)?,
        "impaired" => table.with_keys(&keys(&[])).map(|_| Kind::Impaired)?,
        "best" => {
            let table = table.with_keys(&keys(&["level", "by"]))?;
            Kind::Best { level: level_of(&table, "level")?, by: figures(&table)? }
        }
        "script" => {
            let table = table.with_keys(&keys(&["trained_on"]))?;
            Kind::Script { trained_on: level_of(&table, "trained_on")? }
        }
        "scale" => {
            let table = table.with_keys(&keys(&["factor", "levels"]))?;
            let factor = table.string("factor", "workload")?;
            let factor = factor.ok_or_else(|| table.missing("factor", "factor = \"workload\""))?;
            let example = r#"["viewers-91", "viewers-10"]"#;
            let levels = table.strings("levels", example)?;
            let levels = levels.ok_or_else(|| table.missing("levels", &format!("levels = {example}")))?;
            if levels.value.len() < 2 {
                let problem = "`levels`: found fewer than two, expected what stands for what";
                return Err(levels.error(problem));
            }
            Kind::Scale { factor, levels }
        }
        "value" => read_value(table.with_keys(&keys(&["metric", "figure", "of", "least", "most"]))?)?,
        _ => {
            let problem = unknown(&kind.value, "a kind of claim", &ClaimTest::KINDS);
            return Err(kind.error(format!("`kind`: {problem}")));
        }
    };
    Ok(Written { says: says.value, kind })
}

fn read_value(table: Table<'_>) -> Result<Kind, InputError> {
    let figure = table.string("figure", "median")?.map(|name| figure(&name)).transpose()?;
    let bound = |key| Ok(table.parsed(key, "120ms", parse_bound)?.map(|bound| bound.value));
    let (least, most): (Option<Bound>, Option<Bound>) = (bound("least")?, bound("most")?);
    if least.is_none() && most.is_none() {
        return Err(
            table.error("found neither `least` nor `most`, expected one: what is claimed of the value?")
        );
    }
    let cells = table.table("of")?.map(|of| levels(&of)).transpose()?.unwrap_or_default();
    let metric = table.string("metric", "page_load_time")?;
    Ok(Kind::Value { metric, figure: figure.unwrap_or(ClaimFigure::Median), cells, least, most })
}

/// One level such as `level = { variant = "h2" }`.
fn level_of(table: &Table<'_>, key: &str) -> Result<Placed<Vec<NamedLevel>>, InputError> {
    let example = format!("{key} = {{ variant = \"h2\" }}");
    let inner = table.table(key)?.ok_or_else(|| table.missing(key, &example))?;
    let found = levels(&inner)?;
    if found.len() == 1 {
        return Ok(inner.here(found));
    }
    Err(inner.error(format!("`{key}`: found {} levels, expected one such as `{example}`", found.len())))
}

fn levels(table: &Table<'_>) -> Result<Vec<NamedLevel>, InputError> {
    let mut found = Vec::new();
    for factor in table.keys() {
        if let Some(value) = table.string(&factor.value, "h2")? {
            found.push(NamedLevel { factor, value });
        }
    }
    Ok(found)
}

fn figures(table: &Table<'_>) -> Result<Vec<ClaimFigure>, InputError> {
    let example = r#"["median", "iqr"]"#;
    let names =
        table.strings("by", example)?.ok_or_else(|| table.missing("by", &format!("by = {example}")))?;
    if names.value.is_empty() {
        return Err(names.error("`by`: found an empty list, expected the figures that it was chosen by"));
    }
    names.value.iter().map(figure).collect()
}

fn figure(name: &Placed<String>) -> Result<ClaimFigure, InputError> {
    let known = ClaimFigure::ALL.iter().find(|(known, _)| *known == name.value);
    known.map(|(_, figure)| *figure).ok_or_else(|| {
        let names = ClaimFigure::ALL.map(|(name, _)| name);
        name.error(unknown(&name.value, "a figure of a metric", &names))
    })
}

/// `120ms`, `2rtt`, `64kB` or `0.99`.
fn parse_bound(text: &str) -> Result<Bound, String> {
    let text = text.trim();
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    if let Some(trips) = text.strip_suffix(ROUND_TRIPS) {
        let trips =
            number(trips).ok_or_else(|| format!("found `{text}`, expected round trips such as `2rtt`"))?;
        return Ok(Bound::RoundTrips(trips));
    }
    let precise = |value: u64| Bound::Plain(float(value));
    let plain = number(text).map(Bound::Plain);
    let duration = || units::parse_duration_ns(text).ok().map(precise);
    let size = || units::parse_size_bytes(text).ok().map(precise);
    plain
        .or_else(duration)
        .or_else(size)
        .ok_or_else(|| format!("found `{text}`, expected a value such as `120ms`, `2rtt`, `64kB` or `0.99`"))
}

/// The claims of a study, their levels and metrics looked up.
pub(super) fn resolve(study: &Study, library: &impl Library) -> Result<Vec<Claim>, InputError> {
    let level = |named: &NamedLevel| resolve_level(study, &named.factor, &named.value);
    let resolve_one = |written: &Written| {
        let holds_if = match &written.kind {
            Kind::Pooled => ClaimTest::Pooled,
            Kind::Impaired => ClaimTest::Impaired,
            Kind::Best { level: named, by } => ClaimTest::Best { level: one(named, level)?, by: by.clone() },
            Kind::Script { trained_on } => ClaimTest::Script { trained_on: one(trained_on, level)? },
            Kind::Scale { factor, levels } => {
                let found = levels.value.iter().map(|value| resolve_level(study, factor, value));
                ClaimTest::Scale { levels: found.collect::<Result<_, _>>()? }
            }
            Kind::Value { metric, figure, cells, least, most } => {
                if let Some(metric) = metric {
                    check_name(metric, "`metric`: ", "a metric", &library.metrics())?;
                }
                ClaimTest::Value {
                    metric: metric.as_ref().unwrap_or(&study.metric).value.clone(),
                    figure: *figure,
                    levels: cells.iter().map(level).collect::<Result<_, _>>()?,
                    least: *least,
                    most: *most,
                }
            }
        };
        Ok(Claim { says: written.says.clone(), holds_if })
    };
    study.claims.iter().map(resolve_one).collect()
}

/// [`level_of`] made sure that there is one.
fn one(
    named: &Placed<Vec<NamedLevel>>,
    level: impl Fn(&NamedLevel) -> Result<Level, InputError>,
) -> Result<Level, InputError> {
    named.value.first().map_or_else(|| Err(named.error("found no level, expected one")), level)
}

fn resolve_level(
    study: &Study,
    factor: &Placed<String>,
    value: &Placed<String>,
) -> Result<Level, InputError> {
    let factors = &study.matrix.value;
    let Some(known) = factors.iter().find(|known| known.kind.name() == factor.value) else {
        let names: Vec<&str> = factors.iter().map(|factor| factor.kind.name()).collect();
        return Err(factor.error(unknown(&factor.value, "a factor of the matrix", &names)));
    };
    let names: Vec<&str> = known.levels.value.iter().map(|level| level.value.as_str()).collect();
    if !names.contains(&value.value.as_str()) && known.levels.place.line != 0 {
        let noun = format!("a level of `{}` in the matrix", factor.value);
        return Err(value.error(unknown(&value.value, &noun, &names)));
    }
    Ok(Level { factor: factor.value.clone(), value: value.value.clone() })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SHORT, parse};
    use super::*;

    fn claims(text: &str) -> Result<Vec<Claim>, String> {
        parse(&format!("{SHORT}\n{text}")).map(|plan| plan.claims)
    }

    fn only(text: &str) -> ClaimTest {
        let text = format!("[[claim]]\nsays = \"So it is.\"\n{text}");
        let mut claims = claims(&text).unwrap();
        assert_eq!((claims.len(), claims[0].says.as_str()), (1, "So it is."));
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
                by: vec![ClaimFigure::Median, ClaimFigure::Iqr]
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
                figure: ClaimFigure::Median,
                levels: vec![level("variant", "h3"), level("network", "lan")],
                least: Some(Bound::RoundTrips(2.0)),
                most: Some(Bound::Plain(120e6)),
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
                "value" => "metric = \"page_load_time\"\nfigure = \"mean\"\nmost = \"0.5\"",
                _ => "",
            };
            assert_eq!(only(&format!("kind = \"{kind}\"\n{text}")).kind(), kind);
        }
        for (name, figure) in ClaimFigure::ALL {
            assert_eq!(figure.name(), name);
        }
    }

    #[test]
    fn faults_name_the_place() {
        for (text, expected) in [
            ("[[claim]]\nkind = \"pooled\"", ":17:1: found no `says` in [[claim]]"),
            ("[[claim]]\nsays = \" \"\nkind = \"pooled\"", "`says`: found nothing"),
            ("[[claim]]\nsays = \"x\"", "found no `kind`"),
            (
                "[[claim]]\nsays = \"x\"\nkind = \"poled\"",
                ":19:8: `kind`: found `poled`, expected a kind of claim",
            ),
            (
                "[[claim]]\nsays = \"x\"\nkind = \"pooled\"\nby = [\"iqr\"]",
                "found `by`, expected a key of [[claim]]",
            ),
            ("[[claim]]\nsays = \"x\"\nkind = \"value\"", "found neither `least` nor `most`"),
            (
                "[[claim]]\nsays = \"x\"\nkind = \"value\"\nmost = \"soon\"",
                "`most`: found `soon`, expected a value",
            ),
            ("[[claim]]\nsays = \"x\"\nkind = \"value\"\nmost = \"x rtt\"", "expected round trips"),
            (
                "[[claim]]\nsays = \"x\"\nkind = \"value\"\nmost = \"1s\"\nmetric = \"loadtime\"",
                "`metric`: found `loadtime`",
            ),
            (
                "[[claim]]\nsays = \"x\"\nkind = \"value\"\nmost = \"1s\"\nfigure = \"mode\"",
                "found `mode`, expected a figure",
            ),
            (
                "[[claim]]\nsays = \"x\"\nkind = \"value\"\nmost = \"1s\"\nof = { variant = \"h2\" }",
                "found `h2`, expected a level of `variant`",
            ),
            (
                "[[claim]]\nsays = \"x\"\nkind = \"script\"\ntrained_on = { variants = \"h3\" }",
                "found `variants`, expected a factor",
            ),
            (
                "[[claim]]\nsays = \"x\"\nkind = \"script\"\ntrained_on = {}",
                "`trained_on`: found 0 levels, expected one",
            ),
            (
                "[[claim]]\nsays = \"x\"\nkind = \"best\"\nlevel = { variant = \"h3\" }\nby = []",
                "`by`: found an empty list",
            ),
            (
                "[[claim]]\nsays = \"x\"\nkind = \"scale\"\nfactor = \"variant\"\nlevels = [\"h3\"]",
                "fewer than two",
            ),
        ] {
            let error = claims(text).unwrap_err();
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }
}
