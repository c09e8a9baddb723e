//! `[cores]`: the CPUs of servers, proxies, clients and the emulator.

use crate::cores::{CoreChoice, parse_cpus};
use crate::error::InputError;
use crate::keys;
use crate::reader::{Key, Table};

pub(super) const KEYS: &[Key] = keys! {
    "server", "text", "the first CPU", r#""0-3""#, "The CPUs of servers, as Linux writes them. A server has as many threads as CPUs.";
    "proxy", "text", "the servers'", r#""4""#, "The CPUs of the servers that clients reach, if others are behind them in some cell; and of proxies behind proxies.";
    "client", "text", "the last CPU", r#""5-7""#, "The CPUs of clients; many clients are spread over as many processes.";
    "emulator", "text", "the second CPU if there are three, or the servers'", r#""4""#, "The CPU of the emulator; one.";
};

pub(super) fn read(root: &Table<'_>) -> Result<CoreChoice, InputError> {
    let Some(table) = root.table("cores")? else { return Ok(CoreChoice::default()) };
    let table = table.with_keys(KEYS)?;
    let list = |key: &str| Ok(table.parsed(key, parse_cpus)?.map(|cpus| cpus.value).unwrap_or_default());
    let emulator = match table.parsed("emulator", parse_cpus)? {
        Some(cpus) if cpus.value.len() != 1 => {
            return Err(
                cpus.error("`emulator` has several CPUs, and the emulator uses one; write one number")
            );
        }
        emulator => emulator.and_then(|cpus| cpus.value.first().copied()),
    };
    Ok(CoreChoice { server: list("server")?, proxy: list("proxy")?, client: list("client")?, emulator })
}

#[cfg(test)]
mod tests {
    use crate::cores::CoreChoice;
    use crate::study::tests::{SHORT, parse};

    #[test]
    fn cores_are_in_the_plan() {
        let plan =
            parse(&format!("{SHORT}\n[cores]\nserver = '0-1'\nclient = '3'\nemulator = '2'\n")).unwrap();
        let expected =
            CoreChoice { server: vec![0, 1], proxy: Vec::new(), client: vec![3], emulator: Some(2) };
        assert_eq!(plan.cores, expected);
        assert_eq!(plan.cores.chosen().count(), 4);
        assert!(parse(SHORT).unwrap().cores.is_default());
    }

    #[test]
    fn faults_of_cores() {
        for (line, expected) in [
            ("server = 'first'", "`server`: `first` is not a list of CPUs"),
            ("emulator = '0-1'", "`emulator` has several CPUs"),
            ("cpu = '0'", "`cpu` is not a key of [cores]"),
        ] {
            let fault = parse(&format!("{SHORT}\n[cores]\n{line}\n")).unwrap_err();
            assert!(fault.contains(expected), "{line}: {fault}");
        }
    }
}
