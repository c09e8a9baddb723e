//! Descriptions of programs: a folder of text files for each. Folders in the current directory take
//! precedence.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path};

use anyhow::Context;
use include_dir::Dir;
use model::error::Source;
use model::{InputError, Variant};
use serde::Deserialize;
use toml::Spanned;

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
    #[error("cannot read {path}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
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

/// `[[file]]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenFile {
    name: Spanned<String>,
    template: Spanned<String>,
}

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
        |path: &Path, source| DescriptionError::Unreadable { path: path.display().to_string(), source };
    let mut files = Files { folder: folder.display().to_string(), texts: BTreeMap::new() };
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        if let Some(name) = file_name(&path).filter(|_| path.is_file()) {
            let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
            files.texts.insert(name, text);
        }
    }
    Ok(files)
}

pub(crate) fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

/// A non-empty list of valid templates.
pub(crate) fn words(
    list: &Spanned<Vec<Spanned<String>>>,
    source: Source<'_>,
    what: &str,
) -> Result<Vec<String>, InputError> {
    if list.get_ref().is_empty() {
        return Err(source.error(list.span(), format!("found an empty list, expected {what}")));
    }
    templates(list.get_ref(), source)
}

/// Valid templates.
pub(crate) fn templates(list: &[Spanned<String>], source: Source<'_>) -> Result<Vec<String>, InputError> {
    list.iter().map(|text| valid_template(text, source)).collect()
}

/// A valid template.
pub(crate) fn valid_template(text: &Spanned<String>, source: Source<'_>) -> Result<String, InputError> {
    template::check(text.get_ref()).map_err(|problem| source.error(text.span(), problem.problem))?;
    Ok(text.get_ref().clone())
}

/// The variants of a description: at least one, each at most once. `read` reads the rest of an entry.
pub(crate) fn variants<E, V>(
    list: &Spanned<Vec<E>>,
    source: Source<'_>,
    name: impl Fn(&E) -> &Spanned<String>,
    mut read: impl FnMut(&E, Variant) -> Result<V, InputError>,
) -> Result<Vec<V>, InputError> {
    let (mut known, mut variants) = (Vec::new(), Vec::new());
    for entry in list.get_ref() {
        let fault = |problem: String| source.error(name(entry).span(), problem);
        let variant: Variant = name(entry).get_ref().parse().map_err(fault)?;
        if known.contains(&variant) {
            return Err(fault(format!("`{variant}` appears twice; remove one of the entries")));
        }
        known.push(variant);
        variants.push(read(entry, variant)?);
    }
    if variants.is_empty() {
        return Err(source.error(list.span(), "found no `[[variant]]`, expected at least one"));
    }
    Ok(variants)
}

/// A configuration file with a valid template in the description's folder.
pub(crate) fn config_file(
    file: &WrittenFile,
    files: &Files,
    source: Source<'_>,
) -> Result<ConfigFile, InputError> {
    plain_name(&file.name, source)?;
    let template_name = file.template.get_ref();
    let Some(template) = files.texts.get(template_name) else {
        let problem = format!("found `{template_name}`, expected the name of a file in {}", files.folder);
        return Err(source.error(file.template.span(), problem));
    };
    let path = format!("{}/{template_name}", files.folder);
    template::check(template).map_err(|problem| problem.at(Source { file: &path, text: template }))?;
    Ok(ConfigFile {
        name: file.name.get_ref().clone(),
        template_name: template_name.clone(),
        template: template.clone(),
    })
}

/// Checks that a name has no folders.
pub(crate) fn plain_name(name: &Spanned<String>, source: Source<'_>) -> Result<(), InputError> {
    let mut parts = Path::new(name.get_ref()).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(_)), None) => Ok(()),
        _ => {
            let problem = format!("found `{}`, expected a file name without folders", name.get_ref());
            Err(source.error(name.span(), problem))
        }
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
