//! An external client's command line and files, from its templates.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use minijinja::value::{Serde, Value};
use model::HttpVersion;
use model::assignment::{Assignment, Trust};
use model::units::NANOS_PER_S;
use model::workload::{ClosedLoop, Workload};
use workload::formats::clients::RequestedLoad;

use super::description::{ARGUMENTS, Client, milliseconds};
use super::paths::ListedPaths;
use crate::description::write_files;
use crate::installed;
use crate::program::ProgramInfo;
use crate::template::{Variables, fill};

/// The certificate authority's file in the client's folder.
const AUTHORITY_FILE: &str = "authority.pem";

/// A closed loop, for an external client.
pub(crate) struct ExternalLoop<'a> {
    pub(crate) listed: ListedPaths<'a>,
    pub(crate) connections: u32,
    pub(crate) streams: u32,
    pub(crate) requests: Option<u64>,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) warmup_ns: u64,
}

impl<'a> ExternalLoop<'a> {
    /// The loop of an assignment that the client supports.
    ///
    /// # Errors
    /// The workload is no closed loop, or has paths that the client cannot request.
    pub(crate) fn of(assignment: &'a Assignment) -> Result<ExternalLoop<'a>> {
        let Workload::Closed(ClosedLoop { load, duration_ns, .. }) = &assignment.workload else {
            anyhow::bail!("external clients support closed loops only; change the workload");
        };
        let is_http1 = assignment.target.variant.http() == HttpVersion::Http11;
        let listed = ListedPaths::of(&load.paths, &assignment.options.requests)
            .map_err(|problem| anyhow!("the client {problem}"))?;
        Ok(ExternalLoop {
            listed,
            connections: load.connections,
            streams: if is_http1 { 1 } else { load.streams },
            requests: load.requests,
            duration_ns: *duration_ns,
            warmup_ns: load.warmup_ns,
        })
    }
}

impl ExternalLoop<'_> {
    /// The parameters for reading the client's output.
    pub(crate) fn for_reading(&self) -> RequestedLoad {
        let connections = u64::from(self.connections);
        let in_flight = connections.saturating_mul(self.streams.into());
        RequestedLoad { connections, cut_off: if self.duration_ns.is_some() { in_flight } else { 0 } }
    }
}

/// A client's environment.
pub(crate) struct Place<'a> {
    /// The client's folder, which exists; an absolute path.
    pub(crate) folder: &'a Path,
    /// The tool's program, `{{self}}` in a template.
    pub(crate) tool: &'a Path,
    /// Whether the server's name resolves there.
    pub(crate) has_names: bool,
}

impl Client {
    /// Writes the files and fills the command in.
    ///
    /// # Errors
    /// A template cannot be filled in, or a file cannot be written.
    pub(crate) fn command(
        &self,
        info: &ProgramInfo,
        assignment: &Assignment,
        requested: &ExternalLoop<'_>,
        place: &Place<'_>,
    ) -> Result<Vec<String>> {
        let variables = self.variables(info, assignment, requested, place)?;
        write_files(&self.files, &self.folder, place.folder, &info.version, &info.build, &variables)?;
        let arguments = self.variant(assignment.target.variant).map_or(&[][..], |entry| &entry.arguments);
        let words: Vec<String> = self
            .command
            .iter()
            .flat_map(|word| if word == ARGUMENTS { arguments.to_vec() } else { vec![word.clone()] })
            .collect();
        let command = fill(&words, &self.file(), &info.version, &info.build, &variables)?;
        ensure!(!command.is_empty(), "{}: the command is empty; write a program", self.file());
        Ok(command)
    }

    fn variables(
        &self,
        info: &ProgramInfo,
        assignment: &Assignment,
        requested: &ExternalLoop<'_>,
        place: &Place<'_>,
    ) -> Result<Variables> {
        let text = |path: &Path| Value::from(path.display().to_string());
        let target = &assignment.target;
        let (variant, port) = (target.variant, target.address.port());
        let base = |host: &str| format!("{}://{host}:{port}", variant.scheme());
        let named = base(&target.server_name);
        let reachable = if place.has_names { named.clone() } else { base(&target.address.ip().to_string()) };
        // The program draws its own numbers, or counts on from its own beginning.
        let ListedPaths { paths, order } = &requested.listed;
        let first = paths.first().map_or("/", String::as_str);
        let seconds = |ns: u64| ns.div_ceil(NANOS_PER_S);
        let duration_ns = requested.duration_ns.unwrap_or(0);
        let pins = &assignment.pins;
        let [stream, connection] = if variant.is_quic() {
            [pins.http3.stream_window_bytes, pins.http3.connection_window_bytes]
        } else {
            [pins.http2.stream_window_bytes, pins.http2.connection_window_bytes]
        };
        let bits = BTreeMap::from([("stream", window_bits(stream)), ("connection", window_bits(connection))]);
        let writes = self.writes.as_ref().map(|name| place.folder.join(name));
        Ok(Variables::from([
            ("self", text(place.tool)),
            ("program", text(&info.program)),
            ("root", Value::from(installed::root_of(&info.program))),
            ("version", Value::from(info.version.as_str())),
            ("folder", text(place.folder)),
            ("writes", Value::from(writes.map_or_else(String::new, |path| path.display().to_string()))),
            ("variant", Value::from(variant.name())),
            ("url", Value::from(format!("{reachable}{first}"))),
            ("named_url", Value::from(format!("{named}{first}"))),
            ("base", Value::from(reachable)),
            ("paths", Value::from(paths.to_vec())),
            ("order", Value::from(order.name())),
            ("seed", Value::from(assignment.seed)),
            ("has_names", Value::from(place.has_names)),
            ("server_name", Value::from(target.server_name.as_str())),
            ("authority", Value::from(target.authority.as_str())),
            ("address", Value::from(target.address.ip().to_string())),
            ("port", Value::from(port)),
            ("ca", text(&authority(&target.trust, place.folder)?)),
            ("connections", Value::from(requested.connections)),
            ("streams", Value::from(requested.streams)),
            ("requests", Value::from(requested.requests.unwrap_or(0))),
            ("duration_s", Value::from(seconds(duration_ns))),
            ("duration_ms", Value::from(milliseconds(duration_ns))),
            ("warmup_ms", Value::from(milliseconds(requested.warmup_ns))),
            ("window_bits", Value::from(bits)),
            ("pins", Value::from(Serde(pins))),
        ]))
    }
}

/// The exponent of the smallest power of two that is at least the window: h2load supports only powers of two.
const fn window_bits(bytes: u32) -> u32 {
    bytes.next_power_of_two().trailing_zeros()
}

/// Writes the certificate authority into the client's folder.
fn authority(trust: &Trust, folder: &Path) -> Result<std::path::PathBuf> {
    let path = folder.join(AUTHORITY_FILE);
    if let Trust::Authority(pem) = trust {
        fs::write(&path, pem).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_powers_of_two() {
        assert_eq!([65_535, 65_536, 6 << 20].map(window_bits), [16, 16, 23]);
    }
}
