//! `environment.json`: the machine and the settings under which a study ran.
//!
//! Everything is only read. A value that the machine does not provide is absent, never guessed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The version of `environment.json`.
pub const ENVIRONMENT_VERSION: u32 = 1;

/// Settings of the kernel that affect measurements, as paths below `/proc/sys`.
const SETTINGS: &[&str] = &[
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_available_congestion_control",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_no_metrics_save",
    "net/ipv4/tcp_fastopen",
    "net/ipv4/tcp_ecn",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_window_scaling",
    "net/ipv4/ip_local_port_range",
    "net/core/default_qdisc",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/rmem_default",
    "net/core/wmem_default",
    "net/core/somaxconn",
    "net/core/netdev_max_backlog",
    "kernel/sched_rt_runtime_us",
    "kernel/unprivileged_userns_clone",
    "kernel/timer_migration",
    "user/max_user_namespaces",
    "user/max_net_namespaces",
    "fs/file-max",
    "vm/swappiness",
];

/// Facts about the machine and the tool at the start of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of the format.
    pub version: u32,
    /// h123's version.
    pub tool_version: String,
    /// The command line that started the study.
    pub command: Vec<String>,
    /// The kernel's name, release and build, as `uname` reports them.
    pub kernel: String,
    /// The machine's architecture.
    pub architecture: String,
    /// The distribution's name and version (`/etc/os-release`).
    pub distribution: Option<String>,
    /// Identifies the boot; results of one boot share clocks and kernel state.
    pub boot_id: Option<String>,
    /// The processor's model.
    pub cpu_model: Option<String>,
    /// Processors that this process may run on.
    pub cpus_usable_count: Option<u32>,
    /// Processors that are online.
    pub cpus_online_count: Option<u32>,
    /// The distinct frequency governors of the online processors.
    pub cpu_governors: Vec<String>,
    /// Whether the frequency can rise above the nominal one.
    pub cpu_boost: Option<bool>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Total memory.
    pub memory_total_bytes: Option<u64>,
    /// Memory that was available at the start.
    pub memory_available_bytes: Option<u64>,
    /// Signs of a virtual machine or container; empty where there is none.
    pub virtualisation: Vec<String>,
    /// The load averages over 1, 5 and 15 minutes at the start.
    pub load_average: Option<[f64; 3]>,
    /// The user's number; 0 is root.
    pub user_id: u32,
    /// The soft limit of open file descriptors per process.
    pub open_files_limit: Option<u64>,
    /// Kernel settings that affect the results, read on the host; pins override some inside the lab.
    pub kernel_settings: BTreeMap<String, String>,
    /// Versions of servers and clients, the assignment of CPUs, the emulation, and whether it lacked
    /// real-time priority.
    #[serde(default)]
    pub notes: BTreeMap<String, String>,
}

impl Environment {
    /// The environment of this machine, now.
    pub fn collect(tool_version: &str, command: Vec<String>) -> Self {
        let system = rustix::system::uname();
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Environment {
            version: ENVIRONMENT_VERSION,
            tool_version: tool_version.to_owned(),
            command,
            kernel: [system.sysname(), system.release(), system.version()].map(text).join(" "),
            architecture: text(system.machine()),
            distribution: read("/etc/os-release").as_deref().and_then(distribution),
            boot_id: read("/proc/sys/kernel/random/boot_id"),
            cpu_model: cpu_model(&cpuinfo),
            cpus_usable_count: std::thread::available_parallelism()
                .ok()
                .and_then(|n| u32::try_from(n.get()).ok()),
            cpus_online_count: read("/sys/devices/system/cpu/online").as_deref().and_then(count_of_list),
            cpu_governors: governors(Path::new("/sys/devices/system/cpu")),
            cpu_boost: boost(),
            clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            memory_total_bytes: memory_bytes(&meminfo, "MemTotal:"),
            memory_available_bytes: memory_bytes(&meminfo, "MemAvailable:"),
            virtualisation: virtualisation(&cpuinfo),
            load_average: read("/proc/loadavg").as_deref().and_then(load_average),
            user_id: rustix::process::geteuid().as_raw(),
            open_files_limit: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
            kernel_settings: SETTINGS.iter().filter_map(|name| setting(name)).collect(),
            notes: BTreeMap::new(),
        }
    }
}

/// The text of a small file without surrounding white space; `None` where it is missing or empty.
fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn setting(name: &str) -> Option<(String, String)> {
    let value = read(Path::new("/proc/sys").join(name))?;
    Some((name.replace('/', "."), value.split_whitespace().collect::<Vec<_>>().join(" ")))
}

fn distribution(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_owned())
}

/// x86 has `model name`; other architectures have `Processor`, `cpu model` or only numbers.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    ["model name", "cpu model", "Processor", "Model"].iter().find_map(|key| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == *key).then(|| value.trim().to_owned())
        })
    })
}

/// How many numbers a list such as `0-3,8` holds.
fn count_of_list(list: &str) -> Option<u32> {
    list.split(',').try_fold(0_u32, |count, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        count.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

fn governors(cpus: &Path) -> Vec<String> {
    let folders = fs::read_dir(cpus).into_iter().flatten().flatten();
    let mut found: Vec<String> =
        folders.filter_map(|folder| read(folder.path().join("cpufreq/scaling_governor"))).collect();
    found.sort();
    found.dedup();
    found
}

fn boost() -> Option<bool> {
    let cpus = Path::new("/sys/devices/system/cpu");
    read(cpus.join("cpufreq/boost"))
        .map(|boost| boost == "1")
        .or_else(|| read(cpus.join("intel_pstate/no_turbo")).map(|off| off == "0"))
}

fn memory_bytes(meminfo: &str, key: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn load_average(text: &str) -> Option<[f64; 3]> {
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?])
}

fn virtualisation(cpuinfo: &str) -> Vec<String> {
    let mut signs = Vec::new();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    if flags.split_whitespace().any(|flag| flag == "hypervisor") {
        signs.push("the processor reports a hypervisor".to_owned());
    }
    for (name, path) in [
        ("hypervisor", "/sys/hypervisor/type"),
        ("maker", "/sys/class/dmi/id/sys_vendor"),
        ("product", "/sys/class/dmi/id/product_name"),
    ] {
        signs.extend(read(path).map(|value| format!("{name}: {value}")));
    }
    for (path, sign) in [("/.dockerenv", "a Docker container"), ("/run/.containerenv", "a Podman container")]
    {
        if Path::new(path).exists() {
            signs.push(sign.to_owned());
        }
    }
    signs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_the_essentials() {
        let environment = Environment::collect("0.0.0", vec!["h123".into()]);
        assert!(environment.kernel.starts_with("Linux "), "{}", environment.kernel);
        assert!(environment.cpus_usable_count.unwrap() >= 1);
        assert!(environment.memory_total_bytes.unwrap() > 1 << 20);
        assert!(environment.kernel_settings.contains_key("net.ipv4.tcp_congestion_control"));
        let text = serde_json::to_string(&environment).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&text).unwrap(), environment);
    }

    #[test]
    fn files_of_the_kernel_are_parsed() {
        assert_eq!(count_of_list("0-3,8"), Some(5));
        assert_eq!(count_of_list("3-0"), None);
        assert_eq!(memory_bytes("MemFree: 1 kB\nMemTotal:  2048 kB\n", "MemTotal:"), Some(2 << 20));
        assert_eq!(load_average("0.50 1.25 2.00 1/100 42"), Some([0.5, 1.25, 2.0]));
        assert_eq!(cpu_model("processor : 0\nmodel name\t: A 1\n").as_deref(), Some("A 1"));
        assert_eq!(distribution("NAME=x\nPRETTY_NAME=\"Debian 13\"\n").as_deref(), Some("Debian 13"));
    }
}
