//! The columns of the table `monitor`.

use model::monitor::{Name, Quantity, Reading, Subject, SubjectKind};

use super::{Of, Row, of_columns};
use crate::table::value::{Column, Value, integer, maybe_text, text};

type MonitorRow = Of<Reading>;

impl Row for MonitorRow {
    const TABLE: &'static str = "monitor";
    const MEANING: &'static str = "one row per quantity of a subject and round; stamps are ns since the run's start, counters count from \
         there";

    fn columns() -> Vec<Column<Self>> {
        let mut columns = of_columns();
        columns.extend([
            integer(
                "at_ns",
                "ns",
                "when the round began; all its rows have this stamp",
                |r: &MonitorRow| r.is.at_ns.into(),
                |r, v| v.to(&mut r.is.at_ns),
            ),
            maybe_text(
                "node",
                "the node; null for the tool itself and for the whole machine",
                |r: &MonitorRow| r.is.subject.node.as_deref().into(),
                |r, v| {
                    r.is.subject.node = v.maybe_text()?.map(Name::from);
                    Ok(())
                },
            ),
            text(
                "kind",
                "what the subject is: process, thread, core, sockets, interface or protocols",
                |r: &MonitorRow| Value::Text(r.is.subject.kind.name()),
                |r, v| v.to_named(&mut r.is.subject.kind),
            ),
            text(
                "subject",
                "its name, such as `nginx: worker process` or `eth0`",
                |r: &MonitorRow| Value::Text(&r.is.subject.name),
                |r, v| {
                    r.is.subject.name = v.as_text()?.into();
                    Ok(())
                },
            ),
            integer(
                "id",
                "1",
                "the number of the process, thread or core; 0 for all else",
                |r: &MonitorRow| r.is.subject.id.into(),
                |r, v| v.to(&mut r.is.subject.id),
            ),
            text(
                "quantity",
                "what was read; its unit stands last in its name",
                |r: &MonitorRow| Value::Text(r.is.quantity.name()),
                |r, v| {
                    let name = v.as_text()?;
                    let unknown = || format!("found `{name}`, expected a quantity of the monitor");
                    r.is.quantity = Quantity::of_name(name).ok_or_else(unknown)?;
                    Ok(())
                },
            ),
            integer(
                "value",
                "1",
                "the value: a counter's since the run's start, a gauge's at that time",
                |r: &MonitorRow| r.is.value.into(),
                |r, v| v.to(&mut r.is.value),
            ),
        ]);
        columns
    }

    fn blank() -> Self {
        let subject = Subject { node: None, kind: SubjectKind::Process, name: "".into(), id: 0 };
        Of { run: 0, cell: 0, is: Reading { at_ns: 0, subject, quantity: Quantity::CpuUser, value: 0 } }
    }

    fn run(&self) -> u32 {
        self.run
    }
}
