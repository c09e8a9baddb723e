//! Command-line options that override keys of a study file.

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches, value_parser};
use model::options::Visit;
use model::study::{Override, OverrideValue};

use self::Kind::{Added, Flag, Full, List, Number, Text};

/// The group of these options without `--runs`, for options that exclude them: a result accepts more runs,
/// but no other settings.
pub(crate) const GROUP: &str = "overrides";
const RUNS: &str = "runs";
/// Every visit but the first requires that clients may resume sessions.
const VISIT: &str = "workload.*.visit";
const RESUMPTION: &str = "hold.resumption";

/// Every option: its name, the name of its value, what it does to which key of the study, its help and an
/// example. A new override is a new entry.
const OPTIONS: &[(&str, &str, Kind, &str, &str, &str)] = &[
    ("full", "", Full, "full", "Run the study at its full size, as its table `[full]` says", "--full"),
    (
        "server",
        "NAME",
        List,
        "matrix.server",
        "Use this server instead of the study's (repeatable)",
        "--server nginx",
    ),
    (
        "client",
        "NAME",
        List,
        "matrix.client",
        "Use this client instead of the study's: `h123`, or an external client that `h123 servers` lists (repeatable)",
        "--client h123 --client wrk",
    ),
    (
        "variant",
        "NAME",
        List,
        "matrix.variant",
        "Use this variant instead of the study's (repeatable)",
        "--variant h1s --variant h3",
    ),
    (
        "network",
        "NAME",
        List,
        "matrix.network",
        "Use this network instead of the study's (repeatable)",
        "--network north-carolina",
    ),
    ("topology", "NAME", Text, "topology", "Use this topology instead of the study's", "--topology shared"),
    (
        "workload",
        "NAME",
        List,
        "matrix.workload",
        "Run only this workload of the study (repeatable)",
        "--workload large",
    ),
    (
        "arm",
        "NAME",
        List,
        "matrix.arm",
        "Run only this arm of the study (repeatable)",
        "--arm 'one connection' --arm 'ten connections'",
    ),
    (
        "backend",
        "NAME",
        List,
        "backends",
        "Emulate the networks with this backend: `user-space` or `netem` (repeat to compare both)",
        "--backend netem",
    ),
    (
        "margin",
        "SHARE",
        Text,
        "margin",
        "Margin of interest: differences inside it do not matter",
        "--margin 3%",
    ),
    (
        "statistic",
        "NAME",
        Text,
        "statistic",
        "Statistic of the metric that verdicts are about: `median`, `mean`, `p90`, `p95`, `p99` or `p999`",
        "--statistic p99",
    ),
    ("runs", "N", Number, "runs", "Runs of each cell", "--runs 20"),
    (
        "warm",
        "AMOUNT",
        Text,
        "warm",
        "Let a separate client use the server for this many requests or this long before each run is measured",
        "--warm '500 requests'",
    ),
    (
        "page-cache",
        "STATE",
        Text,
        "page_cache",
        "State of the page cache before each run: `cold` or `warm`",
        "--page-cache cold",
    ),
    (
        "cpu-slowdown",
        "N",
        Number,
        "workload.*.cpu_slowdown",
        "Let browsers compute this many times slower than the machine, 1 to 100",
        "--client chromium --cpu-slowdown 4",
    ),
    (
        "filmstrip",
        "",
        Flag,
        "workload.*.filmstrip",
        "Keep a picture of a browser's page whenever it changes, in the result folder",
        "--client chromium --filmstrip",
    ),
    (
        "visit",
        "KIND",
        Text,
        VISIT,
        "Let clients be at the server as in this visit: `first`, `repeat`, `cached` or `upgrade`; all but `first` \
         resume TLS sessions",
        "--client chromium --variant h3 --visit upgrade",
    ),
    ("seed", "N", Number, "seed", "Random seed of the order and of every block", "--seed 7"),
    (
        "accept",
        "CHECK",
        Added,
        "accept",
        "Where this check would invalidate a cell, give the cell a caveat instead; the result records this (repeatable)",
        "--accept client_waited",
    ),
    (
        "monitor",
        "RATE",
        Text,
        "monitor",
        "How often the monitor reads processes, cores, sockets and interfaces: 1Hz to 10Hz, or `off` [default: the \
         study's, or 2Hz]",
        "--monitor 10Hz",
    ),
];

/// What an option does to its key.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Sets a string.
    Text,
    /// Sets a whole number.
    Number,
    /// Sets a list, one entry for each use of the option.
    List,
    /// Adds entries to the study's list.
    Added,
    /// Sets `true`.
    Flag,
    /// Asks for the study's full size.
    Full,
}

/// The overrides on a command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct StudyOverrides {
    overrides: Vec<Override>,
    /// The same as on a command line, each with a space before it.
    text: String,
}

impl StudyOverrides {
    /// For the study's reader.
    pub(crate) fn values(&self) -> &[Override] {
        &self.overrides
    }

    /// The runs of each cell, if they are given.
    pub(crate) fn runs(&self) -> Option<u64> {
        self.overrides.iter().find_map(|given| match given.value {
            OverrideValue::Number(runs) if given.key == RUNS => Some(runs),
            _ => None,
        })
    }

    /// As on a command line, each with a space before it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl Args for StudyOverrides {
    fn augment_args(command: Command) -> Command {
        let args = OPTIONS.iter().map(|(name, value_name, kind, _, help, example)| {
            let long_help = format!("{help}\n\nExample: {example}");
            let arg = Arg::new(*name).long(*name).help(*help).long_help(long_help);
            match kind {
                Full | Flag => arg.action(ArgAction::SetTrue),
                Text => arg.value_name(*value_name),
                Number => arg.value_name(*value_name).value_parser(value_parser!(u64)),
                List | Added => arg.value_name(*value_name).action(ArgAction::Append),
            }
        });
        let names = OPTIONS.iter().map(|(name, ..)| *name).filter(|name| *name != RUNS);
        command.args(args).group(ArgGroup::new(GROUP).args(names).multiple(true))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for StudyOverrides {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = StudyOverrides::default();
        for (name, _, kind, key, ..) in OPTIONS {
            let (value, texts) = match kind {
                Number => match matches.get_one::<u64>(name) {
                    Some(number) => (OverrideValue::Number(*number), vec![number.to_string()]),
                    None => continue,
                },
                Full if matches.get_flag(name) => (OverrideValue::Full, vec![String::new()]),
                Flag if matches.get_flag(name) => {
                    (OverrideValue::Toml(true.to_string()), vec![String::new()])
                }
                Full | Flag => continue,
                Text | List | Added => {
                    let texts: Vec<String> = matches.get_many(name).into_iter().flatten().cloned().collect();
                    let value = match (kind, texts.first()) {
                        (_, None) => continue,
                        (List, _) => OverrideValue::List(texts.clone()),
                        (Added, _) => OverrideValue::Added(texts.clone()),
                        (_, Some(text)) => OverrideValue::Text(text.clone()),
                    };
                    (value, texts)
                }
            };
            given.text.extend(texts.iter().map(|text| format!(" --{name} {text}").trim_end().to_owned()));
            if *key == VISIT && value != OverrideValue::Text(Visit::First.to_string()) {
                let value = OverrideValue::Toml(true.to_string());
                given.overrides.push(Override { key: RESUMPTION, value });
            }
            given.overrides.push(Override { key, value });
        }
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Tool {
        #[command(flatten)]
        overrides: StudyOverrides,
        #[arg(long, conflicts_with = GROUP)]
        resume: bool,
    }

    #[test]
    fn options_become_overrides_and_text() {
        let line = "tool --network lan --runs 7 --network dsl --accept version --filmstrip --monitor off";
        let StudyOverrides { overrides, text } = Tool::parse_from(line.split(' ')).overrides;
        assert_eq!(text, " --network lan --network dsl --runs 7 --filmstrip --accept version --monitor off");
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let expected = [
            ("matrix.network", OverrideValue::List(list(&["lan", "dsl"]))),
            ("runs", OverrideValue::Number(7)),
            ("workload.*.filmstrip", OverrideValue::Toml("true".to_owned())),
            ("accept", OverrideValue::Added(list(&["version"]))),
            ("monitor", OverrideValue::Text("off".to_owned())),
        ];
        assert_eq!(overrides, expected.map(|(key, value)| Override { key, value }));
    }

    #[test]
    fn a_visit_that_is_not_the_first_has_sessions() {
        let of = |visit: &str| Tool::parse_from(["tool", "--visit", visit]).overrides;
        let keys = |visit: &str| of(visit).overrides.iter().map(|given| given.key).collect::<Vec<_>>();
        assert_eq!((keys("first"), keys("upgrade")), (vec![VISIT], vec![RESUMPTION, VISIT]));
        assert_eq!(of("cached").text(), " --visit cached");
    }

    #[test]
    fn every_override_excludes_the_options_that_exclude_the_group() {
        assert_eq!(Tool::parse_from(["tool", "--runs=7", "--resume"]).overrides.runs(), Some(7));
        for (name, _, kind, ..) in OPTIONS.iter().filter(|(name, ..)| *name != RUNS) {
            let option =
                if matches!(kind, Full | Flag) { format!("--{name}") } else { format!("--{name}=1") };
            let error = Tool::try_parse_from(["tool", &option, "--resume"]).unwrap_err();
            assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict, "--{name}");
        }
    }
}
