//! `h123 plan`: the matrix, the order, the expected time; runs nothing.

use anyhow::Result;
use clap::Args;
use model::study::Overrides;

use crate::exit::Exit;
use crate::library::plan_of;
use crate::terminal::print;

/// What a study varies can be narrowed from the command line.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Narrow {
    /// Use this server instead of the study's (repeat for several)
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Vec<String>,
    /// Use this client instead of the study's: `h123`, or another's program that `h123 servers` lists (repeat for several)
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Vec<String>,
    /// Only this variant (repeat for several)
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Vec<String>,
    /// Only this network (repeat for several)
    #[arg(long, value_name = "NAME")]
    pub(crate) network: Vec<String>,
    /// Run over this topology instead of the study's
    #[arg(long, value_name = "NAME")]
    pub(crate) topology: Option<String>,
    /// Only this workload of the study (repeat for several)
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: Vec<String>,
    /// Emulate the networks by this, `user-space` or `netem` (repeat to compare both)
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Vec<String>,
    /// Runs of each cell
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u32>,
    /// The seed of the order and of all randomness
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Accept what this check invalidates: a caveat in place of an invalid cell, and so recorded (repeat for several)
    #[arg(long, value_name = "CHECK")]
    pub(crate) accept: Vec<String>,
    /// How often the monitor reads processes, cores, sockets and interfaces: 1Hz to 10Hz, or `off` [default: the study's, or
    /// 2Hz]
    #[arg(long, value_name = "RATE")]
    pub(crate) monitor: Option<String>,
}

impl Narrow {
    /// The options as they would be typed, each with a space in front.
    pub(crate) fn as_options(&self) -> String {
        let lists = [
            ("server", &self.server),
            ("client", &self.client),
            ("variant", &self.variant),
            ("network", &self.network),
            ("workload", &self.workload),
            ("backend", &self.backend),
            ("accept", &self.accept),
        ];
        let named = lists
            .iter()
            .flat_map(|(option, names)| names.iter().map(move |name| format!(" --{option} {name}")));
        let topology = self.topology.iter().map(|name| format!(" --topology {name}"));
        let runs = self.runs.map(|runs| format!(" --runs {runs}"));
        let seed = self.seed.map(|seed| format!(" --seed {seed}"));
        let monitor = self.monitor.iter().map(|rate| format!(" --monitor {rate}"));
        named.chain(topology).chain(runs).chain(seed).chain(monitor).collect()
    }

    /// What the command line says instead of the study.
    pub(crate) fn overrides(&self) -> Overrides {
        let list = |names: &[String]| (!names.is_empty()).then(|| names.to_vec());
        Overrides {
            variants: list(&self.variant),
            accept: list(&self.accept),
            servers: list(&self.server),
            clients: list(&self.client),
            networks: list(&self.network),
            workloads: list(&self.workload),
            topology: self.topology.clone(),
            backends: list(&self.backend),
            runs: self.runs,
            seed: self.seed,
            monitor: self.monitor.clone(),
        }
    }
}

/// Show what a study would do: the matrix, the order, the expected time. Runs nothing
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 plan quick
  h123 plan quick --server nginx --runs 10
  h123 plan my-study.toml --json")]
pub(crate) struct PlanArgs {
    /// A name from studies/, or the path of a .toml file
    study: String,
    #[command(flatten)]
    narrow: Narrow,
    /// Print the plan as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A study that does not exist or is wrong.
pub(crate) fn run(args: &PlanArgs) -> Result<Exit> {
    let plan = plan_of(&args.study, &args.narrow.overrides())?;
    if args.json {
        print(&serde_json::to_string_pretty(&plan)?)?;
    } else {
        print(model::plan_text::plan_text(&plan).trim_end())?;
    }
    Ok(Exit::Done)
}
