//! `[arm.NAME]`: levels of several factors that belong together, as one factor `arm`.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::factors::{DeclaredFactor, FactorKind};
use crate::arm::{ARM, Arm, Difference};
use crate::error::{InputError, Source};
use crate::keys;
use crate::named::unknown;
use crate::reader::document;
use crate::reader::{Key, Placed, PlacedStrings, Table};

pub(super) const KEYS: &[Key] = keys! {
    "variant", "text", "that of `[matrix]`", r#""h2c""#, "The variant.";
    "server", "text", "that of `[matrix]`", r#""nginx""#, "The server.";
    "client", "text", "that of `[matrix]`", r#""h2load""#, "The client.";
    "workload", "text", "that of `[matrix]`", r#""front""#, "The workload.";
    "network", "text", "that of `[matrix]`", r#""lan""#, "The network.";
    "hold", "table", "the study's", "{ http1_connections = 1 }", "The keys of [`[hold]`](#hold) that differ in this arm.";
    "differs", "list of texts", "none", r#"["server"]"#,
        "What differs between the arms besides the HTTP version on purpose: `server`, `client`, `workload`, `hold`, `tls`, `network`.";
};

const HOLD: &str = "hold";
/// The key of a workload that may have one value for each arm.
const SCRIPT: &str = "script";

/// The arms of a study.
#[derive(Debug)]
pub(super) struct Arms<'a> {
    levels: PlacedStrings,
    /// The arms of the matrix, in its order.
    arms: Vec<ArmEntry<'a>>,
    /// All tables, also those of arms that the command line leaves out.
    all: Vec<ArmEntry<'a>>,
    /// The factors that the arms give together.
    pub(super) bundled: Vec<FactorKind>,
}

/// `[arm.NAME]` as written.
#[derive(Clone, Debug)]
struct ArmEntry<'a> {
    name: Placed<String>,
    differs: Vec<Difference>,
    levels: Vec<(FactorKind, Placed<String>)>,
    table: &'a DeTable<'a>,
}

/// Reads the arms; `None` if the matrix has none.
///
/// # Errors
/// An arm without a table, a table without an arm, arms with different keys, or a factor that the matrix has
/// too.
pub(super) fn read<'a>(
    document: &'a DeTable<'a>,
    source: Source<'a>,
) -> Result<Option<Arms<'a>>, InputError> {
    let root = Table::whole(source, document, "the study");
    let tables = root.table(ARM)?;
    let matrix = root.table("matrix")?;
    let levels = match &matrix {
        Some(matrix) => matrix.some_strings(ARM)?,
        None => None,
    };
    let (tables, levels) = match (tables, levels) {
        (None, None) => return Ok(None),
        (Some(tables), None) => {
            return Err(tables.error(
                "`[arm.NAME]` requires the factor `arm`; add `arm = [\"NAME\"]` to `[matrix]`, or remove the table",
            ));
        }
        (None, Some(levels)) => {
            return Err(levels.error("`arm` has no tables; add one such as `[arm.NAME]` for each level"));
        }
        (Some(tables), Some(levels)) => (tables, levels),
    };
    let raw = document::table(document, ARM);
    let mut all = Vec::new();
    for (name, table) in tables.named_tables()? {
        let Some(raw) = raw.and_then(|arms| document::table(arms, &name.value)) else { continue };
        all.push(read_arm(name, &table.with_keys(KEYS)?, raw)?);
    }
    let arms = choose(&levels, &all)?;
    let bundled = bundle(&all)?;
    let arms = Arms { levels, arms, all, bundled };
    if let Some(matrix) = &matrix {
        arms.check_matrix(matrix)?;
    }
    Ok(Some(arms))
}

fn read_arm<'a>(
    name: Placed<String>,
    table: &Table<'a>,
    raw: &'a DeTable<'a>,
) -> Result<ArmEntry<'a>, InputError> {
    let mut levels = Vec::new();
    for kind in FactorKind::ALL {
        if let Some(level) = table.string(kind.name())? {
            levels.push((kind, level));
        }
    }
    table.table(HOLD)?;
    let differs = table.strings("differs")?.map_or(Vec::new(), |differs| differs.value);
    let differs = differs.into_iter().map(|word| {
        let read = word.map(|word| word.parse().map_err(|problem| format!("`differs`: {problem}")))?;
        Ok(read.value)
    });
    Ok(ArmEntry { name, differs: differs.collect::<Result<_, _>>()?, levels, table: raw })
}

/// The tables of the levels, in their order.
fn choose<'a>(levels: &PlacedStrings, all: &[ArmEntry<'a>]) -> Result<Vec<ArmEntry<'a>>, InputError> {
    let names: Vec<&str> = all.iter().map(|arm| arm.name.value.as_str()).collect();
    let mut arms: Vec<ArmEntry<'a>> = Vec::new();
    for level in &levels.value {
        let arm = all.iter().find(|arm| arm.name.value == level.value);
        let arm = arm.ok_or_else(|| {
            level.error(unknown(&level.value, "an `[arm.NAME]` that this study defines", &names))
        })?;
        arms.push(arm.clone());
    }
    let is_used = |arm: &&ArmEntry<'_>| levels.value.iter().any(|level| level.value == arm.name.value);
    match all.iter().find(|arm| !is_used(arm)) {
        Some(unused) if !levels.place.is_command_line() => {
            let used: Vec<&str> = levels.value.iter().map(|level| level.value.as_str()).collect();
            Err(unused.name.error(format!(
                "`[arm.{}]` is not used: `arm` in `[matrix]` names {}; add it there, or remove the table",
                unused.name.value,
                used.join(", ")
            )))
        }
        _ => Ok(arms),
    }
}

/// The factors of the arms, which all arms have to give.
fn bundle(all: &[ArmEntry<'_>]) -> Result<Vec<FactorKind>, InputError> {
    let has = |arm: &ArmEntry<'_>, kind| arm.levels.iter().any(|(own, _)| *own == kind);
    let mut bundled = Vec::new();
    for kind in FactorKind::ALL {
        let Some(with) = all.iter().find(|arm| has(arm, kind)) else { continue };
        if let Some(without) = all.iter().find(|arm| !has(arm, kind)) {
            return Err(without.name.error(format!(
                "`[arm.{}]` has no `{kind}`, which `[arm.{}]` has; add one, or write `{kind}` in `[matrix]` only",
                without.name.value, with.name.value
            )));
        }
        bundled.push(kind);
    }
    Ok(bundled)
}

impl<'a> Arms<'a> {
    pub(super) const fn count(&self) -> usize {
        self.arms.len()
    }

    /// As a factor of the matrix.
    pub(super) fn factor(&self) -> DeclaredFactor {
        DeclaredFactor { name: ARM.to_owned(), levels: self.levels.clone() }
    }

    /// As the plan has them.
    pub(super) fn planned(&self) -> Vec<Arm> {
        let planned = |arm: &ArmEntry<'_>| Arm { name: arm.name.value.clone(), differs: arm.differs.clone() };
        self.arms.iter().map(planned).collect()
    }

    /// The servers that any arm names.
    pub(super) fn servers(&self) -> impl Iterator<Item = &str> {
        self.all.iter().filter_map(|arm| arm.level(FactorKind::Server))
    }

    fn check_matrix(&self, matrix: &Table<'_>) -> Result<(), InputError> {
        let twice = matrix.keys().find(|key| self.bundled.iter().any(|kind| kind.name() == key.value));
        if let (Some(key), Some(arm)) = (twice, self.all.first()) {
            let problem = format!(
                "`{0}` is a factor, and `[arm.{1}]` gives it too; remove it from `[matrix]` or from the arms",
                key.value, arm.name.value
            );
            return Err(key.error(problem));
        }
        let required = [FactorKind::Variant, FactorKind::Server, FactorKind::Network, FactorKind::Workload];
        for kind in required {
            let is_given = self.bundled.contains(&kind) || matrix.keys().any(|key| key.value == kind.name());
            if let (false, Some(arm)) = (is_given, self.all.first()) {
                return Err(arm.name.error(format!(
                    "`[arm.{}]` has no `{kind}`, and `[matrix]` has none; add it to every arm, or to `[matrix]`",
                    arm.name.value
                )));
            }
        }
        Ok(())
    }

    /// Refuses workloads and servers of the document that no arm names.
    pub(super) fn check_used(&self, document: &DeTable<'_>, source: Source<'_>) -> Result<(), InputError> {
        for kind in [FactorKind::Workload, FactorKind::Server] {
            if !self.bundled.contains(&kind) {
                continue;
            }
            let is_used = |name: &str| self.all.iter().any(|arm| arm.level(kind) == Some(name));
            let tables = document::table(document, kind.name()).into_iter().flat_map(DeTable::keys);
            if let Some(unused) = tables.into_iter().find(|name| !is_used(name.get_ref())) {
                let name = unused.get_ref();
                let problem =
                    format!("`[{kind}.{name}]` is not used: no arm names it; name it, or remove the table");
                return Err(source.error(unused.span(), problem));
            }
        }
        Ok(())
    }

    /// The arms that hold keys, and the paths of the keys.
    pub(super) fn held(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        self.all.iter().flat_map(|arm| {
            let held = document::table(arm.table, HOLD).map(paths).unwrap_or_default().into_iter();
            held.map(|path| (arm.name.value.as_str(), [vec![HOLD.to_owned()], path].concat()))
        })
    }

    /// Writes an arm into a study's document, and removes the workloads and servers of other arms.
    pub(super) fn write<'f>(&'f self, level: usize, document: &mut DeTable<'f>) {
        let arm = &self.arms[level];
        for kind in &self.bundled {
            let tables = match kind {
                FactorKind::Workload | FactorKind::Server => document::table_mut(document, kind.name()),
                _ => None,
            };
            if let (Some(tables), Some(own)) = (tables, arm.level(*kind)) {
                let is_of_other = |name: &str| self.all.iter().any(|other| other.level(*kind) == Some(name));
                document::retain(tables, |name| name == own || !is_of_other(name));
            }
            if let (Some(matrix), Some(value)) =
                (document::table_mut(document, "matrix"), arm.table.get(kind.name()))
            {
                let levels = DeValue::Array(std::iter::once(value.clone()).collect());
                matrix.insert(
                    Spanned::new(value.span(), kind.name().into()),
                    Spanned::new(value.span(), levels),
                );
            }
        }
        choose_scripts(&arm.name.value, document);
        for path in document::table(arm.table, HOLD).map(paths).unwrap_or_default() {
            let found = path
                .iter()
                .try_fold(arm.table.get(HOLD), |value, key| Some(value?.get_ref().get(key.as_str())));
            if let Some(Some(value)) = found {
                document::insert(
                    document,
                    &[vec![HOLD.to_owned()], path].concat(),
                    &value.span(),
                    value.clone(),
                );
            }
        }
    }
}

/// Writes the scripts of an arm in place of the tables that have one for each arm.
fn choose_scripts(arm: &str, document: &mut DeTable<'_>) {
    let Some(workloads) = document::table_mut(document, FactorKind::Workload.name()) else { return };
    for (_, workload) in workloads.iter_mut() {
        let DeValue::Table(workload) = workload.get_mut() else { continue };
        let Some(script) = workload.get_mut(SCRIPT) else { continue };
        let own = match script.get_ref() {
            DeValue::Table(scripts) => scripts.get(arm).cloned(),
            _ => None,
        };
        if let Some(own) = own {
            *script = own;
        }
    }
}

impl ArmEntry<'_> {
    fn level(&self, kind: FactorKind) -> Option<&str> {
        self.levels.iter().find(|(own, _)| *own == kind).map(|(_, level)| level.value.as_str())
    }
}

/// The paths of all values of a table.
fn paths(table: &DeTable<'_>) -> Vec<Vec<String>> {
    let of = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        let key = key.get_ref().to_string();
        match value.get_ref() {
            DeValue::Table(inner) => {
                paths(inner).into_iter().map(|path| [vec![key.clone()], path].concat()).collect()
            }
            _ => vec![vec![key]],
        }
    };
    table.iter().flat_map(of).collect()
}
