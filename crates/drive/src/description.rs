//! Descriptions of other people's programs: a folder of text files for each, those of the current directory first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path};

use anyhow::Context;
use include_dir::Dir;
use model::InputError;
use model::error::Source;
use serde::Deserialize;
use toml::Spanned;

use crate::template::{self, Variables};

/// Where the descriptions of one kind of program are.
#[derive(Debug)]
pub(crate) struct Shelf {
    /// What is described, such as `server`.
    pub(crate) noun: &'static str,
    /// The folder in the current directory that is looked at first.
    pub(crate) folder: &'static str,
    /// The file that describes.
    pub(crate) file: &'static str,
    /// Those that the binary carries.
    pub(crate) embedded: &'static Dir<'static>,
}

/// Why there is no such description.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// Nobody described it.
    #[error("found the {noun} `{name}`, expected one of {}: describe it in {place}", known.join(", "))]
    Unknown {
        /// What was looked for, such as `server`.
        noun: &'static str,
        /// The name.
        name: String,
        /// Those that are described.
        known: Vec<String>,
        /// Where its description would be.
        place: String,
    },
    /// Its description is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Its files cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

/// The texts of one description's folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// The folder's name for errors, such as `servers/nginx`.
    pub(crate) folder: String,
    /// Every text file by name.
    pub(crate) texts: BTreeMap<String, String>,
}

/// A configuration file and the template that it is made from.
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
    /// The names of all that are described, in order.
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
    /// There is none of that name, or it cannot be read.
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

/// The files of a description in any folder.
///
/// # Errors
/// One cannot be read.
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

/// A list that is not empty, of templates that can be read.
pub(crate) fn words(
    list: &Spanned<Vec<Spanned<String>>>,
    source: Source<'_>,
    what: &str,
) -> Result<Vec<String>, InputError> {
    if list.get_ref().is_empty() {
        return Err(source.error(list.span(), format!("found an empty list, expected {what}")));
    }
    let check = |word: &Spanned<String>| {
        template::check(word.get_ref()).map_err(|problem| source.error(word.span(), problem.problem))?;
        Ok(word.get_ref().clone())
    };
    list.get_ref().iter().map(check).collect()
}

/// A file to be written, from a template beside the description that can be read.
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

/// A name without folders.
pub(crate) fn plain_name(name: &Spanned<String>, source: Source<'_>) -> Result<(), InputError> {
    let mut parts = Path::new(name.get_ref()).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(_)), None) => Ok(()),
        _ => {
            let problem = format!("found `{}`, expected a plain file name", name.get_ref());
            Err(source.error(name.span(), problem))
        }
    }
}

/// Fills the templates in and writes the files into `into`; `folder` is the description's, for errors.
///
/// # Errors
/// The place of what cannot be filled in, or a file that cannot be written.
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
