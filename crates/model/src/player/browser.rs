//! Players that are libraries of JavaScript and play in a browser.

use serde::{Deserialize, Serialize};

use super::{Player, Rule};
use crate::named;

named! { "a player of browsers";
    /// A library of JavaScript that plays videos in browsers.
    pub enum PlayerLibrary {
        /// hls.js, which plays HLS.
        HlsJs = "hlsjs",
        /// dash.js, the reference player of DASH.
        DashJs = "dashjs",
    }
}

/// How a browser plays a video.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrowserPlay {
    /// The player.
    pub library: PlayerLibrary,
    /// The path of the manifest that it is given.
    pub manifest: String,
}

impl PlayerLibrary {
    /// The name under which people know it.
    pub const fn title(self) -> &'static str {
        match self {
            PlayerLibrary::HlsJs => "hls.js",
            PlayerLibrary::DashJs => "dash.js",
        }
    }

    /// Whether it plays manifests with the extension of this path.
    pub fn takes(self, manifest: &str) -> bool {
        let file = manifest.split('?').next().unwrap_or_default();
        file.rsplit_once('.').is_some_and(|(_, extension)| extension == self.extension())
    }

    /// The extension of its manifests.
    pub const fn extension(self) -> &'static str {
        match self {
            PlayerLibrary::HlsJs => "m3u8",
            PlayerLibrary::DashJs => "mpd",
        }
    }

    /// The manifest of made media, below its folder.
    pub const fn manifest(self) -> &'static str {
        match self {
            PlayerLibrary::HlsJs => "main.m3u8",
            PlayerLibrary::DashJs => "manifest.mpd",
        }
    }

    /// The rules that it has.
    pub const fn rules(self) -> &'static [&'static str] {
        match self {
            PlayerLibrary::HlsJs => &["fixed", "hlsjs"],
            PlayerLibrary::DashJs => &["fixed", "dashjs", "dashjs_throughput", "dashjs_bola"],
        }
    }

    /// The player whose own rule this is.
    pub const fn of_rule(rule: Rule) -> Option<PlayerLibrary> {
        match rule {
            Rule::Hlsjs => Some(PlayerLibrary::HlsJs),
            Rule::Dashjs | Rule::DashjsThroughput | Rule::DashjsBola => Some(PlayerLibrary::DashJs),
            Rule::Fixed { .. } | Rule::Throughput | Rule::Buffer | Rule::Bola => None,
        }
    }
}

impl Player {
    /// How much media must be buffered before playback begins, unless the study says so: one segment.
    pub fn default_startup_ns(&self) -> u64 {
        // A live stream's segments are known to its client; one of them is enough there.
        self.longest_segment_ns().clamp(1, self.goal_ns)
    }

    /// Whether playback begins and resumes as the study says, and not as a browser's player decides.
    pub fn sets_thresholds(&self) -> bool {
        let default_ns = self.default_startup_ns();
        (self.startup_ns, self.rebuffer_ns) != (default_ns, default_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_takes_its_manifests_and_has_its_rules() {
        let [hls, dash] = [PlayerLibrary::HlsJs, PlayerLibrary::DashJs];
        assert!(hls.takes("/media/film/main.m3u8?x=1.mpd") && !hls.takes("/media/film/manifest.mpd"));
        assert!(dash.takes("/live.mpd") && !dash.takes("/mpd"));
        for library in [hls, dash] {
            assert!(library.takes(library.manifest()));
            let own = library.rules().iter().filter_map(|name| Rule::adaptive(name));
            assert!(own.into_iter().all(|rule| PlayerLibrary::of_rule(rule) == Some(library)));
        }
        assert_eq!(PlayerLibrary::of_rule(Rule::Bola), None);
    }
}
