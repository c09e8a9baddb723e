//! The variables of a server's templates.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use anyhow::Result;
use minijinja::value::{Serde, Value};
use model::assignment::Target;
use model::media::{Media, MediaSource};
use model::{Page, Setting, Settings, Variant};

use super::{Privileges, StartSpec};
use crate::certificate::IdentityFiles;
use crate::installed;
use crate::program::ProgramInfo;
use crate::servers::adapter::Adapter;
use crate::template::Variables;

impl Adapter {
    #[expect(clippy::too_many_arguments, reason = "each is a variable of the template")]
    pub(super) fn variables(
        &self,
        spec: &StartSpec<'_>,
        info: &ProgramInfo,
        folder: &Path,
        identity: &IdentityFiles,
        address: IpAddr,
        ports: &[(Variant, u16)],
        privileges: Privileges,
    ) -> Result<Variables> {
        let text = |path: &Path| Value::from(path.display().to_string());
        let content =
            if spec.content.exists() { spec.content.canonicalize()? } else { spec.content.to_owned() };
        let access_log = self.access_log.as_ref().map_or("access.log", |log| log.file.as_str());
        let ports = ports.iter().map(|(variant, port)| (variant.name(), *port));
        Ok(Variables::from([
            ("self", text(spec.tool)),
            ("program", text(&info.program)),
            ("root", Value::from(installed::root_of(&info.program))),
            ("version", Value::from(info.version.as_str())),
            ("folder", text(folder)),
            ("content", text(&content)),
            ("certificate", text(&identity.certificate)),
            ("key", text(&identity.key)),
            ("ca", text(&identity.authority)),
            ("hosts_json", Value::from(serde_json::to_string(&identity.hosts)?)),
            ("access_log", text(&folder.join(access_log))),
            ("address", Value::from(address.to_string())),
            ("ports", Value::from(ports.collect::<BTreeMap<_, _>>())),
            ("server_name", Value::from(spec.server_name)),
            ("has_browsers", Value::from(spec.has_browsers)),
            ("threads", Value::from(spec.threads)),
            ("seed", Value::from(spec.seed)),
            ("set", self.settings(spec.set)),
            ("back", spec.back.map_or_else(|| Value::from(()), back_value)),
            ("is_root", Value::from(privileges == Privileges::Root)),
            ("pins", Value::from(Serde(spec.pins))),
            ("pins_json", Value::from(serde_json::to_string(spec.pins)?)),
            ("media_files", Value::from(has_files(spec.media))),
            ("media_json", Value::from(serde_json::to_string(spec.media)?)),
            ("pages_json", Value::from(serde_json::to_string(spec.pages)?)),
            ("pages", pages_value(spec.pages)?),
        ]))
    }

    /// The value of every tunable: the study's, the default, or none where the template decides.
    pub(in crate::servers) fn settings(&self, set: &Settings) -> Value {
        let entries = self.tunables.iter().map(|tunable| {
            let setting = set.get(&tunable.name).or(tunable.default.as_ref());
            (tunable.name.clone(), setting.map_or_else(|| Value::from(()), setting_value))
        });
        Value::from(entries.collect::<BTreeMap<_, _>>())
    }
}

/// Whether some of the media has files, which the origin then serves.
fn has_files(media: &[Media]) -> bool {
    media.iter().any(|media| matches!(media.source, MediaSource::Folder(_)))
}

fn setting_value(setting: &Setting) -> Value {
    match setting {
        Setting::Flag(flag) => Value::from(*flag),
        Setting::Number(number) => Value::from(*number),
        Setting::Text(text) => Value::from(text.as_str()),
    }
}

/// The pages, each with its delivery.
fn pages_value(pages: &[Page]) -> Result<Value> {
    let page_value = |page: &Page| {
        let mut value = serde_json::to_value(page)?;
        value["delivery"] = serde_json::to_value(&page.delivery)?;
        Ok(value)
    };
    let pages: Vec<_> = pages.iter().map(page_value).collect::<Result<_>>()?;
    Ok(Value::from(Serde(pages)))
}

/// The server behind a proxy, for its template.
fn back_value(back: &Target) -> Value {
    Value::from(BTreeMap::from([
        ("variant", Value::from(back.variant.name())),
        ("address", Value::from(back.address.ip().to_string())),
        ("port", Value::from(back.address.port())),
        ("server_name", Value::from(back.server_name.as_str())),
        ("is_encrypted", Value::from(back.variant.is_encrypted())),
    ]))
}

#[cfg(test)]
mod tests {
    use model::Pins;

    use super::super::feeds;
    use super::*;
    use crate::Servers;
    use crate::template::render;

    fn rendered(server: &str, version: &str, variants: &[Variant], privileges: Privileges) -> String {
        rendered_with(server, version, variants, privileges, &Settings::new(), None, &[])
    }

    fn rendered_with(
        server: &str,
        version: &str,
        variants: &[Variant],
        privileges: Privileges,
        set: &Settings,
        back: Option<&Target>,
        media: &[Media],
    ) -> String {
        let adapter = Servers::find(server).unwrap();
        let identity = crate::Authority::new().unwrap().issue(&["server.h123.test"], &[]).unwrap();
        let found = ProgramInfo {
            program: "/usr/sbin/nginx".into(),
            version: version.to_owned(),
            tls: None,
            variants: Vec::new(),
            feed: None,
            build: String::new(),
        };
        let pins = Pins::default();
        let spec = StartSpec {
            folder: Path::new("/run/of/one"),
            tool: Path::new("/bin/h123"),
            variants,
            pins: &pins,
            set,
            back,
            pages: &[],
            media,
            content: Path::new("/nonexistent/content"),
            identity: &identity,
            server_name: "server.h123.test",
            has_browsers: false,
            threads: 2,
            cpus: &[],
            seed: 7,
        };
        let folder = Path::new("/run/of/one");
        let files = IdentityFiles {
            certificate: folder.join("server.pem"),
            key: folder.join("server.key"),
            authority: folder.join("authority.pem"),
            hosts: BTreeMap::new(),
        };
        let ports: Vec<_> = (8001..).zip(variants).map(|(port, variant)| (*variant, port)).collect();
        let address = IpAddr::from([10, 0, 0, 2]);
        let mut variables =
            adapter.variables(&spec, &found, folder, &files, address, &ports, privileges).unwrap();
        variables.extend(feeds::values(spec.media, 1935, "/modules/rtmp.so"));
        let file = &adapter.files[0];
        render(&file.template, version, "", &variables).map_err(|problem| problem.problem).unwrap()
    }

    #[test]
    fn nginx_before_the_directive_http2() {
        let variants = [Variant::H1, Variant::H1s, Variant::H2c, Variant::H2];
        insta::assert_snapshot!(rendered("nginx", "1.22.1", &variants, Privileges::Root));
    }

    #[test]
    fn nginx_with_http3() {
        insta::assert_snapshot!(rendered("nginx", "1.30.0", &Variant::ALL, Privileges::RootOfUserNamespace));
    }

    #[test]
    fn nginx_that_takes_a_feed() {
        let text = "title = 'x'\nsegment = '2s'\nlength = '4s'\n[video]\nladder = ['1Mbit/s']\n";
        let source = model::error::Source { file: "x.toml", text };
        let modelled = Media::parse("modelled", source).unwrap();
        let folder = model::media::MediaFolder {
            folder: "/film".to_owned(),
            manifest: "main.m3u8".to_owned(),
            files: BTreeMap::new(),
        };
        let film = Media { name: "show".to_owned(), source: MediaSource::Folder(folder), ..modelled.clone() };
        let film = film.fed(3_000_000_000, 60_000_000_000);
        let of = |media: &[Media]| {
            let (set, variants) = (Settings::new(), [Variant::H1]);
            rendered_with("nginx", "1.22.1", &variants, Privileges::Root, &set, None, media)
        };
        let config = of(&[modelled.clone(), film]);
        for expected in [
            "load_module \"/modules/rtmp.so\";",
            "listen 127.0.0.1:1935;",
            "application show {",
            "hls_fragment 3000ms;",
            "hls_playlist_length 60000ms;",
            "location ^~ /media/show/ {",
        ] {
            assert!(config.contains(expected), "{expected}: {config}");
        }
        assert_eq!(config.matches("application ").count(), 1, "{config}");
        assert!(!of(&[modelled]).contains("rtmp"));
    }

    #[test]
    fn cleartext_alone_needs_no_certificate() {
        let config = rendered("nginx", "1.30.0", &[Variant::H1, Variant::H2c], Privileges::User);
        assert!(!config.contains("ssl_") && !config.contains("user root"), "{config}");
    }

    #[test]
    fn the_origins_configuration_is_json() {
        let text = rendered("origin", "0.1.0", &[Variant::H1, Variant::H3], Privileges::Root);
        let config: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(config["listen"]["h3"], "10.0.0.2:8002");
        assert_eq!(config["threads"], 2);
        assert_eq!(serde_json::from_value::<Pins>(config["pins"].clone()).unwrap(), Pins::default());
    }
}
