//! Texts in the languages of scripts and configuration files.
//!
//! A path can contain any character except NUL. Each language has a filter that either writes the text so
//! that the program reads the same text, or refuses it where the language cannot express it.

use minijinja::{Environment, Error, ErrorKind, Value};

/// A language: the name of its filter, the program or file format, and how a text is written.
struct Language {
    filter: &'static str,
    title: &'static str,
    write: fn(&str) -> String,
    /// What a text must not contain.
    refused: &'static [&'static str],
}

const LANGUAGES: &[Language] = &[
    // Between single quotes only the single quote has a meaning (POSIX, Shell Command Language, 2.2.2).
    Language { filter: "shell", title: "a shell script", write: in_single_quotes, refused: &["\0"] },
    // JSON strings are also valid in double-quoted YAML.
    Language { filter: "yaml", title: "YAML", write: json, refused: &[] },
    // It expands variables in many directives and has no escape for `$`.
    Language {
        filter: "nginx",
        title: "nginx's configuration",
        write: in_double_quotes,
        refused: &["$", "\0"],
    },
    // It expands `${NAME}` in every line, also in quotes.
    Language {
        filter: "apache",
        title: "Apache's configuration",
        write: in_double_quotes,
        refused: &["${", "\n", "\r", "\0"],
    },
    // Its quotes are those of the shell, but they end with the line.
    Language {
        filter: "haproxy",
        title: "HAProxy's configuration",
        write: in_single_quotes,
        refused: &["\n", "\r", "\0"],
    },
    // A backslash has a meaning only before a double quote.
    Language { filter: "lighttpd", title: "lighttpd's configuration", write: lighttpd, refused: &["\0"] },
    // It replaces placeholders in some strings, and only there is `\{` a brace.
    Language { filter: "caddy", title: "Caddy's configuration", write: json, refused: &["{"] },
    Language { filter: "curl", title: "curl's configuration", write: curl, refused: &["\0"] },
    // Formats without quotes: a value ends with its line.
    Language { filter: "line", title: "a line", write: str::to_owned, refused: &["\n", "\r", "\0"] },
    // Every character itself, for a pattern of PCRE.
    Language { filter: "regex", title: "a regular expression", write: regex, refused: &["\0"] },
];

/// The filters that write any value as JSON: `tojson` is Jinja's name.
const JSON_FILTERS: [&str; 2] = ["json", "tojson"];

/// Adds the filters of all languages.
pub(crate) fn add_filters(environment: &mut Environment<'_>) {
    for language in LANGUAGES {
        environment.add_filter(language.filter, move |text: String| language.quote(&text));
    }
    for filter in JSON_FILTERS {
        environment.add_filter(filter, any_as_json);
    }
}

impl Language {
    fn quote(&self, text: &str) -> Result<String, Error> {
        let ends_in_escape = self.filter == "lighttpd" && text.ends_with('\\');
        let refused = self.refused.iter().copied().find(|refused| text.contains(refused));
        match refused.or(ends_in_escape.then_some("\\")) {
            None => Ok((self.write)(text)),
            Some(refused) => {
                let (title, place) = (self.title, if ends_in_escape { "end with" } else { "contain" });
                let problem = format!(
                    "`{}` cannot be written in {title}, where a text cannot {place} `{}`; choose another name",
                    text.escape_debug(),
                    refused.escape_debug()
                );
                Err(Error::new(ErrorKind::InvalidOperation, problem))
            }
        }
    }
}

fn in_single_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn in_double_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', r#"\""#))
}

fn lighttpd(text: &str) -> String {
    format!("\"{}\"", text.replace('"', r#"\""#))
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A text, number, boolean, list or map as JSON.
fn any_as_json(value: &Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    serde_json::to_string(value).map_err(|error| {
        let problem = format!("a {} cannot be written in JSON: {error}", value.kind());
        Error::new(ErrorKind::InvalidOperation, problem)
    })
}

fn curl(text: &str) -> String {
    let escaped = in_double_quotes(text);
    escaped.replace('\n', r"\n").replace('\r', r"\r").replace('\t', r"\t").replace('\x0b', r"\v")
}

fn regex(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if character.is_ascii() && !character.is_ascii_alphanumeric() {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = " a 'b\" $(touch x) `y` ;#{} ${HOME} %20 \\ \\n \\\" *[c]<d>\n\tz";

    fn quote(filter: &str, text: &str) -> Result<String, String> {
        let language = LANGUAGES.iter().find(|language| language.filter == filter).unwrap();
        language.quote(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_shell_reads_the_same_text() {
        let script = format!("printf %s {}", quote("shell", HOSTILE).unwrap());
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), HOSTILE);
    }

    #[test]
    fn json_and_yaml_read_the_same_text() {
        let text: String = serde_json::from_str(&quote("yaml", HOSTILE).unwrap()).unwrap();
        assert_eq!(text, HOSTILE);
        for filter in JSON_FILTERS {
            let written = render(&format!("{{{{ text|{filter} }}}}")).unwrap();
            assert_eq!(serde_json::from_str::<String>(&written).unwrap(), HOSTILE);
        }
    }

    fn render(template: &str) -> Result<String, String> {
        let mut environment = Environment::new();
        add_filters(&mut environment);
        let variables = minijinja::context! { text => HOSTILE, ports => [80, 443], tls => true };
        environment.render_str(template, variables).map_err(|error| error.to_string())
    }

    #[test]
    fn any_value_is_written_as_json() {
        assert_eq!(render("{{ ports|tojson }} {{ tls|tojson }} {{ 8|json }}").unwrap(), "[80,443] true 8");
        assert_eq!(render("{{ {'a': ['<b>']}|tojson }}").unwrap(), r#"{"a":["<b>"]}"#);
        let error = render("{{ missing|tojson }}").unwrap_err();
        assert!(error.contains("undefined"), "{error}");
    }

    #[test]
    fn escapes_are_those_of_the_program() {
        let text = r#"a "b" \ \n '"#;
        assert_eq!(quote("nginx", text).unwrap(), r#""a \"b\" \\ \\n '""#);
        assert_eq!(quote("apache", text).unwrap(), r#""a \"b\" \\ \\n '""#);
        assert_eq!(quote("lighttpd", text).unwrap(), r#""a \"b\" \ \n '""#);
        assert_eq!(quote("haproxy", text).unwrap(), r#"'a "b" \ \n '\'''"#);
        assert_eq!(quote("curl", "a\"b\\c\nd").unwrap(), r#""a\"b\\c\nd""#);
        assert_eq!(quote("line", text).unwrap(), text);
        assert_eq!(quote("regex", "/a.b(c)ü").unwrap(), r"\/a\.b\(c\)ü");
    }

    #[test]
    fn what_a_language_cannot_express_is_refused() {
        for (filter, text) in [
            ("nginx", "$"),
            ("apache", "${HOME}"),
            ("apache", "a\nb"),
            ("haproxy", "a\nb"),
            ("line", "a\nb"),
            ("line", "a\rb"),
            ("caddy", "{env.HOME}"),
            ("lighttpd", "a\\"),
            ("shell", "a\0b"),
        ] {
            let error = quote(filter, text).unwrap_err();
            assert!(error.contains("choose another name"), "{filter}: {error}");
        }
        assert!(quote("apache", "$(touch x)").is_ok());
    }
}
