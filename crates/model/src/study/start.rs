//! `start`: how the clients of a workload or group begin.

use crate::error::InputError;
use crate::keys;
use crate::reader::{Form, Key, Table};
use crate::start::Start;

pub(super) const KEYS: &[Key] = keys! {
    "evenly", "duration", "none", r#""10s""#, "The period over which they start at equal distances.";
    "poisson", "duration", "none", r#""10s""#, "The period over which they start as a Poisson process.";
    "ramp", "duration", "none", r#""10s""#, "The period over which they start at a rate that rises linearly from 0.";
};

pub(super) fn read(table: &Table<'_>) -> Result<Option<Start>, InputError> {
    let table = match table.form("start")? {
        None => return Ok(None),
        Some(Form::Text(text)) if text.value == "together" => return Ok(Some(Start::Together)),
        Some(Form::Text(text)) => {
            return Err(text.error(format!(
                "`start`: found `{}`; write `together`, or a table such as `{{ evenly = \"10s\" }}`",
                text.value
            )));
        }
        Some(Form::Table(table)) => table.with_keys(KEYS)?,
    };
    let mut starts = Vec::new();
    for key in KEYS {
        if let Some(over) = table.duration_above_zero(key.name)? {
            let over_ns = over.value;
            let start = match key.name {
                "evenly" => Start::Evenly { over_ns },
                "poisson" => Start::Poisson { over_ns },
                _ => Start::Ramp { over_ns },
            };
            starts.push((start, over.place));
        }
    }
    match starts.as_slice() {
        [(start, _)] => Ok(Some(*start)),
        [] => Err(table.error("`start` is empty; write one of `evenly`, `poisson` and `ramp`")),
        [.., (_, place)] => {
            let problem =
                "`start` has several periods; keep one of `evenly`, `poisson` and `ramp`".to_owned();
            Err(InputError { place: place.clone(), problem })
        }
    }
}
