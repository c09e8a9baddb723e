//! Factors that a study sweeps by the path of a key: their levels are quantities.

use model::level::is_sweep;
use model::plan::Plan;
use model::quantity::{Quantity, QuantityKind};

use super::{FactorLevel, Parameter, ROUND_TRIP_TIME, parameter};
use crate::text::clean_line;

/// The factors that the study sweeps, if their levels are quantities of one kind.
pub(super) fn swept(plan: &Plan) -> Vec<Parameter> {
    let levels = plan.cells.first().map_or(&[][..], |cell| &cell.levels);
    let names = levels.iter().map(|level| level.factor.as_str());
    names
        .filter(|name| is_sweep(name))
        .filter_map(|name| {
            let units = plan.cells.iter().map(|cell| Quantity::parse(cell.level(name)?).map(unit));
            let mut units = units.collect::<Option<Vec<&str>>>()?.into_iter();
            let first = units.next()?;
            units.all(|unit| unit == first).then(|| swept_factor(name, first))
        })
        .collect()
}

/// A factor whose levels are numbers.
pub(super) fn swept_factor(name: &str, unit: &'static str) -> Parameter {
    let key = name.rsplit('.').next().unwrap_or(name);
    let title = match name {
        "network.rtt" => ROUND_TRIP_TIME.to_owned(),
        "network.rate" => "link rate".to_owned(),
        _ => clean_line(key).replace('_', " "),
    };
    let prefix = if key == "rtt" { "RTT ".to_owned() } else { format!("{title} ") };
    Parameter {
        factor: name.to_owned(),
        key: name.to_owned(),
        read: |level, name| Quantity::parse(level.swept(name)?).map(Quantity::value),
        clear: |level, name| {
            if level.swept(name).is_some() {
                *level = FactorLevel::Swept(name.to_owned(), String::new());
            }
        },
        ..parameter("", &title, unit, &prefix)
    }
}

/// As [`text::Scale`] takes it.
const fn unit(quantity: Quantity) -> &'static str {
    match quantity.kind {
        QuantityKind::Number => "1",
        QuantityKind::PerSecond => "1/s",
        QuantityKind::Share => "%",
        QuantityKind::Duration => "ns",
        QuantityKind::Size | QuantityKind::BinarySize => "B",
        QuantityKind::Rate => "bit/s",
    }
}
