//! `[class.NAME]`: classes of requests by their paths.

use crate::class::{self, OTHER, RequestClass, class_of};
use crate::error::InputError;
use crate::keys;
use crate::media::{Representation, Track, TrackKind};
use crate::plan::Plan;
use crate::reader::{Key, Placed, Table};
use crate::workload::Workload;

pub(super) const KEYS: &[Key] = keys! {
    "paths", "list of texts", "required", r#"["*.m4s", "/video/*"]"#,
        "Patterns of paths with their queries; `*` stands for any characters. At most 64.";
};

const MOST_CLASSES: usize = 16;
const MOST_PATTERNS: usize = 64;

/// `[class.NAME]`.
#[derive(Clone, Debug)]
pub(super) struct ClassEntry {
    name: Placed<String>,
    paths: Vec<String>,
}

impl ClassEntry {
    fn class(&self) -> RequestClass {
        RequestClass { name: self.name.value.clone(), paths: self.paths.clone() }
    }
}

pub(super) fn read(root: &Table<'_>) -> Result<Vec<ClassEntry>, InputError> {
    let Some(table) = root.table("class")? else { return Ok(Vec::new()) };
    let tables = table.named_tables()?;
    if tables.len() > MOST_CLASSES {
        return Err(
            table.error(format!("the study has {} classes; write at most {MOST_CLASSES}", tables.len()))
        );
    }
    tables.into_iter().map(|(name, table)| read_class(name, &table.with_keys(KEYS)?)).collect()
}

fn read_class(name: Placed<String>, table: &Table<'_>) -> Result<ClassEntry, InputError> {
    if !class::is_name(&name.value) {
        let problem =
            format!("`{}` is not the name of a class; use letters, digits, `-`, `_` and `.`", name.value);
        return Err(name.error(problem));
    }
    if name.value == OTHER {
        let problem =
            format!("`{OTHER}` is the class of all requests that belong to no other; choose another name");
        return Err(name.error(problem));
    }
    let paths = table.required("paths", Table::some_strings)?;
    if paths.value.len() > MOST_PATTERNS {
        return Err(
            paths.error(format!("`paths` has {} patterns; write at most {MOST_PATTERNS}", paths.value.len()))
        );
    }
    Ok(ClassEntry { name, paths: paths.value.into_iter().map(|path| path.value).collect() })
}

/// The classes of a plan; without tables `audio` and `video`, if a workload plays both and their paths tell
/// them apart.
pub(super) fn planned_with<'a>(
    entries: &[ClassEntry],
    workloads: impl Iterator<Item = &'a Workload>,
) -> Vec<RequestClass> {
    if !entries.is_empty() {
        return entries.iter().map(ClassEntry::class).collect();
    }
    let players = workloads.filter_map(Workload::player);
    let tracks: Vec<&Track> = players
        .filter(|player| player.presentation.tracks.len() > 1)
        .flat_map(|player| &player.presentation.tracks)
        .collect();
    let of_kind = |kind: TrackKind| tracks.iter().filter(move |track| track.kind == kind);
    let class = |kind: TrackKind| {
        let mut paths: Vec<String> = Vec::new();
        for one in of_kind(kind).flat_map(|track| &track.representations) {
            let pattern = pattern_of(one);
            paths.extend(pattern.filter(|pattern| !paths.contains(pattern)));
        }
        RequestClass { name: kind.name().to_owned(), paths }
    };
    let classes: Vec<RequestClass> = TrackKind::ALL.map(class).into();
    let is_right = |(number, kind): (usize, TrackKind)| {
        let representations = of_kind(kind).flat_map(|track| &track.representations);
        let mut segments = representations.flat_map(|one| &one.segments);
        // The order of the classes must not decide.
        let others: Vec<RequestClass> = classes.iter().rev().cloned().collect();
        let is_own = |path: &str| {
            class_of(&classes, path) == number && class_of(&others, path) == classes.len() - 1 - number
        };
        segments.all(|segment| is_own(&segment.url))
    };
    let are_usable = classes.iter().all(|class| (1..=MOST_PATTERNS).contains(&class.paths.len()));
    let are_right = are_usable && TrackKind::ALL.into_iter().enumerate().all(is_right);
    if are_right { classes } else { Vec::new() }
}

/// What the paths of a representation's segments have in common at both ends.
fn pattern_of(one: &Representation) -> Option<String> {
    let mut urls = one.segments.iter().map(|segment| segment.url.as_str());
    let first = urls.next()?;
    let (mut prefix, mut suffix) = (first, first);
    for url in urls {
        let same = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
        prefix = prefix.get(..same(prefix.as_bytes(), url.as_bytes()))?;
        let reversed = |text: &str| text.bytes().rev().collect::<Vec<u8>>();
        let length = same(&reversed(suffix), &reversed(url));
        suffix = suffix.get(suffix.len() - length..)?;
    }
    // A path as a whole, or one whose parts overlap.
    let is_whole = prefix.len() + suffix.len() > first.len();
    Some(if is_whole { format!("{prefix}*") } else { format!("{prefix}*{suffix}") })
}

/// Checks that every class of the study's tables has a path in a workload, and that of its metric in every
/// workload that is compared.
pub(super) fn check(plan: &Plan, entries: &[ClassEntry], metric: &Placed<String>) -> Result<(), InputError> {
    if plan.classes.is_empty() {
        return Ok(());
    }
    let has = |workload: usize| {
        let mut has = vec![false; plan.classes.len() + 1];
        for path in plan.workloads[workload].workload.paths() {
            has[class_of(&plan.classes, &path)] = true;
        }
        has
    };
    let all: Vec<Vec<bool>> = (0..plan.workloads.len()).map(has).collect();
    for (number, entry) in entries.iter().enumerate() {
        if !all.iter().any(|has| has[number]) {
            return Err(entry.name.error(format!(
                "the class `{}` matches no path of the workloads that no class above it has; change its `paths`, or \
                 remove it",
                entry.name.value
            )));
        }
    }
    let (_, Some(class)) = class::split_metric(&metric.value) else { return Ok(()) };
    let number = plan.classes.iter().position(|own| own.name == class).unwrap_or(plan.classes.len());
    let compared = plan.cells.iter().filter(|cell| !cell.group.is_background).map(|cell| cell.group.workload);
    match compared.into_iter().find(|workload| !all[*workload][number]) {
        None => Ok(()),
        Some(workload) => Err(metric.error(format!(
            "`metric`: the workload `{}` has no path of the class `{class}`; choose another metric",
            plan.workloads[workload].name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use crate::study::tests::{SHORT, parse};

    /// A loop over two paths with this metric and these classes.
    fn with(metric: &str, classes: &str) -> Result<Plan, String> {
        let text = SHORT.replace("page_load_time", metric).replace(
            "kind = \"page\"\npage = \"small\"",
            "kind = 'closed'\npaths = ['/bytes/1?a.m4s', '/bytes/2']\nrequests = 20",
        );
        parse(&format!("{text}{classes}"))
    }

    #[test]
    fn the_tracks_of_a_player_are_classes() {
        let media = "[media.film]\nsegment = '2s'\nlength = '1min'\n[media.film.video]\nladder = ['1Mbit/s', '8Mbit/s']\n\
                     [media.film.audio]\nladder = ['100kbit/s']\n";
        let player = "kind = 'player'\nmedia = 'film'\nbuffer = '12s'\nrule = 'hlsjs'";
        let text = SHORT.replace("kind = \"page\"\npage = \"small\"", player);
        let plan = parse(&format!("{text}{media}")).unwrap();
        let names: Vec<&str> = plan.classes.iter().map(|class| class.name.as_str()).collect();
        assert_eq!(names, ["audio", "video"]);
        let player = plan.workloads[0].workload.player().unwrap();
        assert_eq!((player.presentation.tracks.len(), player.segments()), (2, 60));
        assert_eq!(player.startup_ns, 2_000_000_000, "one segment");
        for track in &player.presentation.tracks {
            let class = usize::from(track.kind == crate::media::TrackKind::Video);
            for segment in track.representations.iter().flat_map(|one| &one.segments) {
                assert_eq!(crate::class::class_of(&plan.classes, &segment.url), class, "{}", segment.url);
            }
        }
        let own = "[class.all]\npaths = ['*']\n";
        assert_eq!(
            parse(&format!("{text}{media}{own}")).unwrap().classes.len(),
            1,
            "the study's own instead"
        );
        let fault = parse(&format!("{}{media}", text.replace("film", "flim"))).unwrap_err();
        assert!(fault.contains("`media`: `flim` is not"), "{fault}");
        let both = text.replace("media = 'film'", "media = 'film'\nladder = ['1Mbit/s']");
        let fault = parse(&format!("{both}{media}")).unwrap_err();
        assert!(
            fault.contains("`ladder` is for constant bit rates; remove it, or remove `media`"),
            "{fault}"
        );
    }

    #[test]
    fn the_tracks_of_a_player_can_be_compared() {
        let media =
            "[media.film]\nsegment = '2s'\nlength = '1min'\n[media.film.video]\nladder = ['1Mbit/s']\n";
        let audio = "[media.film.audio]\nladder = ['100kbit/s']\n";
        let player = "kind = 'player'\nmedia = 'film'\nbuffer = '12s'\nrule = 'hlsjs'";
        let with = |metric: &str, tables: &str| {
            let text = SHORT.replace("kind = \"page\"\npage = \"small\"", player);
            parse(&format!("{}{tables}", text.replace("page_load_time", metric)))
        };
        let both = format!("{media}{audio}");
        for metric in ["request_time@video", "availability@audio"] {
            assert_eq!(with(metric, &both).unwrap().metric, metric);
        }
        let claim = "[[claim]]\ntext = 'fast'\nkind = 'value'\nmetric = 'request_time@audio'\nmost = '1s'\n";
        with("request_time@video", &format!("{both}{claim}")).unwrap();
        let fault = with("request_time@text", &both).unwrap_err();
        assert!(fault.contains("of a player; the choices are audio, video, other"), "{fault}");
        let fault = with("request_time@video", media).unwrap_err();
        assert!(fault.contains("of a player; there is none"), "one track needs no classes: {fault}");
        let text = SHORT.replace("kind = \"page\"\npage = \"small\"", player);
        let text =
            text.replace("page_load_time", "request_time@video").replace("[\"small\"]", "['small', 'loop']");
        let other = "[workload.loop]\nkind = 'closed'\npaths = ['/bytes/1']\nrequests = 20\n";
        let fault = parse(&format!("{text}{both}{other}")).unwrap_err();
        assert!(fault.contains("the workload `loop` has no path of the class `video`"), "{fault}");
    }

    #[test]
    fn classes_are_in_the_plan_in_their_order() {
        let plan =
            with("request_time@b", "[class.video]\npaths = ['*.m4s']\n[class.b]\npaths = ['*']\n").unwrap();
        let classes: Vec<(&str, &[String])> =
            plan.classes.iter().map(|class| (class.name.as_str(), class.paths.as_slice())).collect();
        assert_eq!(classes, [("video", &["*.m4s".to_owned()][..]), ("b", &["*".to_owned()])]);
        assert_eq!(plan.metric, "request_time@b");
        let text = crate::plan_text::plan_text(&plan);
        assert!(text.contains("request_time@b") && text.contains("video: *.m4s"), "{text}");
        assert_eq!(Plan::from_json(&serde_json::to_vec(&plan).unwrap()).unwrap(), plan);
        let page = "[class.css]\npaths = ['*.css']\n";
        assert_eq!(parse(&format!("{SHORT}{page}")).unwrap().classes.len(), 1);
        with("availability@other", "[class.video]\npaths = ['*.m4s']\n").unwrap();
    }

    #[test]
    fn faults_of_classes() {
        let video = "[class.video]\npaths = ['*.m4s']\n";
        for (metric, classes, expected) in [
            (
                "request_time",
                "[class.video]\npaths = ['*.mp4']\n",
                "the class `video` matches no path of the workloads",
            ),
            (
                "request_time",
                "[class.all]\npaths = ['*']\n[class.b]\npaths = ['/b']\n",
                "the class `b` matches no path",
            ),
            ("request_time", "[class.other]\npaths = ['*']\n", "`other` is the class of all requests that"),
            ("request_time", "[class.'a@b']\npaths = ['*']\n", "`a@b` is not the name of a class"),
            ("request_time", "[class.'']\npaths = ['*']\n", "`` is not the name of a class"),
            ("request_time", "[class.video]\n", "[class.video] has no `paths`"),
            ("request_time", "[class.video]\npaths = []\n", "`paths` is an empty list"),
            (
                "request_time@vido",
                video,
                "`metric`: `vido` is not a class of this study: a table `[class.NAME]`, or without tables `audio` and \
                 `video` of a player; did you mean `video`?",
            ),
            ("request_time@video", "", "`audio` and `video` of a player; there is none"),
            ("page_load_time@video", video, "`page_load_time` is not a metric of requests"),
            ("time@video", video, "`metric`: `time` is not a metric"),
            (
                "request_time@other",
                "[class.all]\npaths = ['*']\n",
                "the workload `small` has no path of the class `other`",
            ),
        ] {
            let fault = with(metric, classes).unwrap_err();
            assert!(fault.contains(expected), "{metric} {classes}: {fault}");
        }
    }
}
