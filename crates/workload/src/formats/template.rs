//! URL templates of DASH (ISO/IEC 23009-1, section 5.3.9.4.4).

use super::shown;

/// The widest number.
const MOST_DIGITS: usize = 20;

/// A template such as `$RepresentationID$/$Number%05d$.m4s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    written: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Id,
    Value { name: ValueName, digits: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueName {
    Number,
    Time,
    Bandwidth,
}

/// What a template is filled with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TemplateValues<'a> {
    /// The representation's id.
    pub id: &'a str,
    /// Its bit rate as the manifest states it, in bit/s.
    pub bits_per_s: u64,
    /// The segment's number.
    pub number: u64,
    /// The segment's time, in ticks.
    pub time: u64,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// Why it is none, as the end of a sentence that begins with its name.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            push_text(&mut parts, before);
            let Some((inside, after)) = after.split_once('$') else {
                return Err(format!("`{}` has a `$` without a second one", shown(text)));
            };
            rest = after;
            match inside {
                "" => push_text(&mut parts, "$"),
                "RepresentationID" => parts.push(Part::Id),
                inside => parts.push(value(inside)?),
            }
        }
        push_text(&mut parts, rest);
        Ok(Template { written: text.to_owned(), parts })
    }

    /// As it was written.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Whether it differs between segments.
    pub fn names_segments(&self) -> bool {
        self.has(ValueName::Number) || self.uses_time()
    }

    /// Whether it contains the segment's time.
    pub fn uses_time(&self) -> bool {
        self.has(ValueName::Time)
    }

    fn has(&self, wanted: ValueName) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Value { name, .. } if *name == wanted))
    }

    /// The URL for these values.
    pub fn fill(&self, values: &TemplateValues<'_>) -> String {
        let mut url = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => url.push_str(text),
                Part::Id => url.push_str(values.id),
                Part::Value { name, digits } => {
                    let value = match name {
                        ValueName::Number => values.number,
                        ValueName::Time => values.time,
                        ValueName::Bandwidth => values.bits_per_s,
                    };
                    url.push_str(&format!("{value:0digits$}"));
                }
            }
        }
        url
    }
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(Part::Text(last)) => last.push_str(text),
        _ => parts.push(Part::Text(text.to_owned())),
    }
}

/// `Number` or `Number%05d`.
fn value(inside: &str) -> Result<Part, String> {
    const EXPECTED: &str = "RepresentationID, Number, Time, Bandwidth, or one of these numbers with %0Nd";
    let fault = || format!("`${}$` is not known; expected {EXPECTED}", shown(inside));
    let (name, format) = inside.split_once('%').unwrap_or((inside, "01d"));
    let name = match name {
        "Number" => ValueName::Number,
        "Time" => ValueName::Time,
        "Bandwidth" => ValueName::Bandwidth,
        _ => return Err(fault()),
    };
    let digits = format.strip_prefix('0').and_then(|format| format.strip_suffix('d'));
    let digits = digits.and_then(|digits| digits.parse().ok()).filter(|digits| *digits <= MOST_DIGITS);
    Ok(Part::Value { name, digits: digits.ok_or_else(fault)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled() {
        let values = TemplateValues { id: "v1", bits_per_s: 800_000, number: 7, time: 90_000 };
        for (text, expected) in [
            ("$RepresentationID$/$Number%05d$.m4s", "v1/00007.m4s"),
            ("$Bandwidth$-$Time$$$a", "800000-90000$a"),
            ("$Number$$Number%02d$", "707"),
            ("$Time%01d$", "90000"),
            ("a.mp4", "a.mp4"),
            ("", ""),
        ] {
            let template = Template::parse(text).unwrap();
            assert_eq!(template.fill(&values), expected, "{text}");
            assert_eq!(template.written(), text);
        }
        assert!(Template::parse("$Time$").unwrap().uses_time());
        assert!(!Template::parse("$RepresentationID$$Bandwidth$").unwrap().names_segments());
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for (text, expected) in [
            ("a$Number", "has a `$` without a second one"),
            ("$number$", "`$number$` is not known"),
            ("$Number%d$", "`$Number%d$` is not known"),
            ("$Number%021d$", "is not known"),
            ("$SubNumber$", "expected RepresentationID, Number"),
        ] {
            let problem = Template::parse(text).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
