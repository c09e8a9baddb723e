//! What a program must have for a variant, beyond being installed.

use model::reader::{Key, Table};
use model::{InputError, keys};

use crate::template::read_templates;

pub(crate) const MODULE_KEYS: &[Key] = keys! {
    "paths", "list of texts", "required", r#"["{{root}}/usr/lib/x/tls.so"]"#, "Paths where the file may be; one must exist. `{{root}}` is the folder of `h123 servers install` for its programs, otherwise empty.";
    "install", "text", "required", r#""apt-get install x-tls""#, "The command that installs it.";
};

/// What an installation must have for a variant, besides the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Text in the version command's output.
    pub(crate) build: Option<String>,
    /// The first version that supports the variant.
    pub(crate) since: Option<String>,
    /// A file that may be in another package.
    pub(crate) module: Option<Module>,
}

/// A file of a program that may be in another package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    /// Templates of the paths where it may be.
    pub(crate) paths: Vec<String>,
    /// The command that installs it.
    pub(crate) install: String,
}

impl Module {
    /// Reads the keys of a module's table.
    ///
    /// # Errors
    /// A value is invalid, with its place.
    pub(crate) fn read(table: &Table<'_>) -> Result<Module, InputError> {
        let install = table.required("install", Table::text)?.value;
        Ok(Module { paths: table.required("paths", read_templates)?.value, install })
    }
}

impl Requirements {
    /// Reads the keys of a `[[variant]]`.
    ///
    /// # Errors
    /// A value is invalid, with its place.
    pub(crate) fn read(variant: &Table<'_>) -> Result<Requirements, InputError> {
        let module = variant.table("module")?;
        let module = module.map(|table| Module::read(&table.with_keys(MODULE_KEYS)?)).transpose()?;
        Ok(Requirements {
            build: variant.text("requires")?.map(|text| text.value),
            since: variant.parsed("since", version)?.map(|since| since.value),
            module,
        })
    }
}

/// A version, such as `1.25.0`.
///
/// # Errors
/// It does not consist of numbers and dots.
pub(crate) fn version(text: &str) -> Result<String, String> {
    let is_version = text.split('.').all(|part| part.parse::<u32>().is_ok());
    is_version
        .then(|| text.to_owned())
        .ok_or_else(|| format!("`{text}` is not a version; write numbers and dots, such as `1.25.0`"))
}
