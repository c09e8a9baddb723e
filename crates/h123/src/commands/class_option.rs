//! `--class NAME=GLOB`: classes of requests by their paths, as `[class.NAME]` of studies.

use model::class::{self, OTHER, RequestClass};

/// A class and one of its patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassOption {
    name: String,
    pattern: String,
}

impl std::str::FromStr for ClassOption {
    type Err = String;

    fn from_str(text: &str) -> Result<ClassOption, String> {
        let form = || format!("`{text}` is not a class; write `NAME=PATTERN`, such as `video=*.m4s`");
        let (name, pattern) = text.split_once('=').ok_or_else(form)?;
        if !class::is_name(name) || name == OTHER || pattern.is_empty() {
            return Err(form());
        }
        Ok(ClassOption { name: name.to_owned(), pattern: pattern.to_owned() })
    }
}

/// The classes of several options; a class may have several patterns.
pub(crate) fn classes(options: &[ClassOption]) -> Vec<RequestClass> {
    let mut classes: Vec<RequestClass> = Vec::new();
    for ClassOption { name, pattern } in options {
        match classes.iter_mut().find(|class| class.name == *name) {
            Some(class) => class.paths.push(pattern.clone()),
            None => classes.push(RequestClass { name: name.clone(), paths: vec![pattern.clone()] }),
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_may_have_several_patterns() {
        let options = ["video=*.m4s", "audio=/a/*", "video=*.ts=1"].map(|text| text.parse().unwrap());
        let classes = classes(&options);
        assert_eq!(
            classes[0],
            RequestClass { name: "video".into(), paths: vec!["*.m4s".into(), "*.ts=1".into()] }
        );
        assert_eq!((classes.len(), classes[1].name.as_str()), (2, "audio"));
        for text in ["video", "=x", "a b=x", "other=x", "video="] {
            assert!(text.parse::<ClassOption>().unwrap_err().contains("write `NAME=PATTERN`"), "{text}");
        }
    }
}
