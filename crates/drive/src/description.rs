//! Descriptions of programs: a folder of text files for each. Folders in the current directory take
//! precedence.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path};

use anyhow::Context;
use include_dir::Dir;
use model::error::Source;
use model::named::{Named, unknown};
use model::reader::{Key, Table, read_file};
use model::{InputError, Variant, keys};

use crate::input;
use crate::requirements::Requirements;
use crate::template::{self, Variables};

/// The descriptions of one kind of program.
#[derive(Debug)]
pub(crate) struct Shelf {
    /// The kind, such as `server`.
    pub(crate) noun: &'static str,
    /// The folder in the current directory that takes precedence.
    pub(crate) folder: &'static str,
    /// The name of the description's main file.
    pub(crate) file: &'static str,
    /// The descriptions in the binary.
    pub(crate) embedded: &'static Dir<'static>,
}

/// Why a description cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// There is no description of that name.
    #[error("there is no {noun} `{name}`; choose one of {}, or describe it in {place}", known.join(", "))]
    Unknown {
        /// The kind, such as `server`.
        noun: &'static str,
        /// The name.
        name: String,
        /// The known names.
        known: Vec<String>,
        /// The path of its description.
        place: String,
    },
    /// The description is invalid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file of the description cannot be read.
    #[error("cannot read {path}: {problem}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        problem: std::io::Error,
    },
}

/// The text files of one description.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// The folder's name for errors, such as `servers/nginx`.
    pub(crate) folder: String,
    /// Every text file by name.
    pub(crate) texts: BTreeMap<String, String>,
}

/// A configuration file and its template.
#[derive(Clone, Debug)]
pub(crate) struct ConfigFile {
    pub(crate) name: String,
    pub(crate) template_name: String,
    pub(crate) template: String,
}

/// The keys at the top of every description.
pub(crate) const KEYS: &[Key] = keys! {
    "title", "text", "required", r#""nginx""#, "One line that describes the program.";
    "program", "list of texts", "required", r#"["nginx", "/opt/nginx/sbin/nginx"]"#,
        "Names or paths of the program; the first that exists is used. Names are searched in the folder of `h123 servers install`, in PATH, and in `/usr/local/sbin`, `/usr/sbin` and `/sbin`.";
    "install", "text", "none", r#""apt-get install nginx-light""#, "The command that installs it, for messages.";
    "version", "table", "required", r#"{ command = ["{{program}}", "-V"], after = "nginx/" }"#,
        "How to find its version; see below.";
    "file", "tables `[[file]]`", "none", "", "Its configuration files; see below.";
    "variant", "tables `[[variant]]`", "required", "", "The variants that it supports, each once; see below.";
};
pub(crate) const VERSION_KEYS: &[Key] = keys! {
    "command", "list of texts", "required", r#"["{{program}}", "-V"]"#,
        "The command that prints the version; it must end within 10 s.";
    "after", "text", "required", r#""nginx/""#, "The text before the version in the command's output.";
};
pub(crate) const FILE_KEYS: &[Key] = keys! {
    "name", "text", "required", r#""nginx.conf""#, "Its name in the run's folder, without folders.";
    "template", "text", "required", r#""nginx.conf.jinja""#, "A file in the description's folder.";
};
pub(crate) const VARIANT_KEYS: &[Key] = keys! {
    "name", "text", "required", r#""h3""#, "`h1`, `h1s`, `h2c`, `h2` or `h3`.";
    "requires", "text", "none", r#""--with-http_v3_module""#,
        "Text that the version command prints only if the program supports the variant.";
    "since", "text", "none", r#""1.25.0""#, "The first version that supports the variant; older ones do not.";
    "module", "table", "none", r#"{ paths = ["/usr/lib/x/tls.so"], install = "apt-get install x-tls" }"#,
        "A file that the variant requires and that may be in another package; see below.";
};

impl Shelf {
    /// The names of all descriptions, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let embedded = self.embedded.dirs().filter(|dir| dir.get_file(dir.path().join(self.file)).is_some());
        let mut names: BTreeSet<String> = embedded.filter_map(|dir| file_name(dir.path())).collect();
        for entry in fs::read_dir(self.folder).into_iter().flatten().flatten() {
            if entry.path().join(self.file).is_file() {
                names.extend(file_name(&entry.path()));
            }
        }
        names.into_iter().collect()
    }

    /// The files of one description.
    ///
    /// # Errors
    /// There is none of that name, or a file cannot be read.
    pub(crate) fn find(&self, name: &str) -> Result<Files, DescriptionError> {
        let local = Path::new(self.folder).join(name);
        let is_name = file_name(Path::new(name)).as_deref() == Some(name);
        if is_name && local.join(self.file).is_file() {
            return read(&local);
        }
        match self.embedded.get_dir(name).filter(|_| is_name) {
            Some(dir) => Ok(self.embedded_files(name, dir)),
            None => Err(DescriptionError::Unknown {
                noun: self.noun,
                name: name.to_owned(),
                known: self.names(),
                place: format!("{}/{name}/{}", self.folder, self.file),
            }),
        }
    }

    fn embedded_files(&self, name: &str, dir: &Dir<'_>) -> Files {
        let texts =
            dir.files().filter_map(|file| Some((file_name(file.path())?, file.contents_utf8()?.to_owned())));
        Files { folder: format!("{}/{name}", self.folder), texts: texts.collect() }
    }
}

/// Reads the files of a description in any folder.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn read(folder: &Path) -> Result<Files, DescriptionError> {
    let unreadable =
        |path: &Path, problem| DescriptionError::Unreadable { path: path.display().to_string(), problem };
    let mut files = Files { folder: folder.display().to_string(), texts: BTreeMap::new() };
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        if let Some(name) = file_name(&path).filter(|_| path.is_file()) {
            let text = input::read_text(&path).map_err(|error| unreadable(&path, error))?;
            files.texts.insert(name, text);
        }
    }
    Ok(files)
}

pub(crate) fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

impl Files {
    /// Reads one of them, the main file; `title` is its name in errors.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        title: &str,
        keys: &'static [Key],
        read: impl FnOnce(&Table<'_>) -> Result<T, InputError>,
    ) -> Result<T, InputError> {
        let file = format!("{}/{name}", self.folder);
        let text = self.texts.get(name).map_or("", String::as_str);
        read_file(Source { file: &file, text }, title, KEYS.iter().chain(keys), read)
    }

    /// Reads every `[[file]]`.
    pub(crate) fn configs(&self, root: &Table<'_>) -> Result<Vec<ConfigFile>, InputError> {
        let tables = root.tables("file")?.into_iter();
        tables.map(|table| self.config(&table.with_keys(FILE_KEYS)?)).collect()
    }

    fn config(&self, table: &Table<'_>) -> Result<ConfigFile, InputError> {
        let name = table.required("name", |table, key| table.parsed(key, plain_name))?.value;
        let template_name = table.required("template", Table::string)?;
        let Some(template) = self.texts.get(&template_name.value) else {
            let known: Vec<&String> = self.texts.keys().collect();
            let problem = unknown(&template_name.value, &format!("a file in {}", self.folder), &known);
            return Err(template_name.error(format!("`template`: {problem}")));
        };
        let (template, template_name) = (template.clone(), template_name.value);
        let source = Source { file: &format!("{}/{template_name}", self.folder), text: &template };
        template::check(&template).map_err(|problem| problem.at(source))?;
        Ok(ConfigFile { name, template_name, template })
    }
}

/// Reads a key: a list of at least one name.
pub(crate) fn read_names<T: Named>(table: &Table<'_>, key: &str) -> Result<Option<Vec<T>>, InputError> {
    let Some(list) = table.some_strings(key)? else { return Ok(None) };
    let read = |name: &str| T::from_name(name).map_err(|problem| format!("`{key}`: {problem}"));
    let names = list.value.into_iter().map(|name| Ok(name.map(|name| read(&name))?.value));
    names.collect::<Result<_, _>>().map(Some)
}

/// Reads every `[[variant]]`: at least one, each at most once. `read` reads the keys that are not in
/// [`VARIANT_KEYS`].
pub(crate) fn read_variants<V>(
    root: &Table<'_>,
    keys: &'static [Key],
    mut read: impl FnMut(&Table<'_>, Variant, Requirements) -> Result<V, InputError>,
) -> Result<Vec<V>, InputError> {
    let (mut known, mut variants) = (Vec::new(), Vec::new());
    for entry in root.tables("variant")? {
        let entry = entry.with_keys(VARIANT_KEYS.iter().chain(keys))?;
        let name = entry.required("name", Table::named)?;
        if known.contains(&name.value) {
            return Err(name.error(format!("`{}` appears twice; remove one of the entries", name.value)));
        }
        known.push(name.value);
        variants.push(read(&entry, name.value, Requirements::read(&entry)?)?);
    }
    if variants.is_empty() {
        return Err(root.error(format!("{} has no `[[variant]]`; add at least one", root.title())));
    }
    Ok(variants)
}

/// A file name without folders.
///
/// # Errors
/// It has folders, or is no name.
pub(crate) fn plain_name(text: &str) -> Result<String, String> {
    let mut parts = Path::new(text).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(_)), None) => Ok(text.to_owned()),
        _ => Err(format!("`{text}` is not a plain file name; write one without folders, such as `a.conf`")),
    }
}

/// Fills the templates in and writes the files into `into`; `folder` is the description's, for errors.
///
/// # Errors
/// A template cannot be filled in, with its place, or a file cannot be written.
pub(crate) fn write_files(
    files: &[ConfigFile],
    folder: &str,
    into: &Path,
    version: &str,
    build: &str,
    variables: &Variables,
) -> anyhow::Result<()> {
    for file in files {
        let name = format!("{folder}/{}", file.template_name);
        let source = Source { file: &name, text: &file.template };
        let text = template::render(&file.template, version, build, variables)
            .map_err(|problem| problem.at(source))?;
        let path = into.join(&file.name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
