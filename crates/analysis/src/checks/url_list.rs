//! The list of URLs contains what the content has.

use std::collections::BTreeSet;

use model::media::{HdsModel, Media, MediaSource};
use model::plan::Plan;
use model::url_pattern::Pattern;

use super::{Check, CheckOutcome, Context, Finding, check};

pub(super) const CHECK: Check = Check {
    measures: "the paths of segments and fragments in the workload's list, compared with those of the study's `[media]` \
               (not of media that ffmpeg sends or a site has)",
    passes: "all exist",
    caveat: "never",
    invalidates: "one does not exist",
    why: "What does not exist cannot be answered, at any load: a server seems to fail that only says so. Numbers of HDS \
          fragments, for example, are not contiguous.",
    remedy: "Take the list from the content itself: `media = \"NAME\"` in the workload, or `h123 urls`.",
    ..check("url_list", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let plan = context.plan;
    let workload = &plan.workload_of(&context.own.cell.group).workload;
    let load = workload.as_loop()?;
    let known: Vec<(&String, bool)> =
        load.paths.iter().filter_map(|path| Some((path, exists(plan, path)?))).collect();
    let missing: Vec<&String> = known.iter().filter(|(_, exists)| !exists).map(|(path, _)| *path).collect();
    let result = if missing.is_empty() { CheckOutcome::Pass } else { CheckOutcome::Invalid };
    let measured = match missing.as_slice() {
        [] => format!("all of {} exist", model::units::counted(known.len() as u64, "path")),
        [first, ..] => format!(
            "{} of {} not in the media, such as `{first}`",
            missing.len(),
            model::units::counted(known.len() as u64, "path")
        ),
    };
    (!known.is_empty()).then(|| Finding { result, measured, threshold: "all exist".to_owned() })
}

/// Whether media of the study have a path; `None` for paths of other content, or that may be other files.
fn exists(plan: &Plan, path: &str) -> Option<bool> {
    let ends = match Pattern::parse(path) {
        Ok(Some(pattern)) => vec![pattern.least(), pattern.most()],
        _ => vec![path.to_owned()],
    };
    let media = plan.media.iter().find(|media| Some(media.name.as_str()) == Media::name_in(&ends[0]))?;
    let known: BTreeSet<String> = match &media.source {
        MediaSource::Feed(_) | MediaSource::Site(_) => return None,
        MediaSource::Folder(folder) => folder.files.keys().cloned().collect(),
        MediaSource::Modelled(_) => {
            let segments = media.presentation.segments().map(|segment| segment.url.clone());
            segments.chain(media.manifests()).collect()
        }
    };
    let has = |path: &String| media.without_title(path).is_some_and(|path| known.contains(path.as_ref()));
    // An HDS origin also has archives and indexes, which only servers read.
    let file = ends[0].rsplit('/').next().unwrap_or_default();
    let is_judged = media.hds().is_none() || HdsModel::is_fragment(file);
    is_judged.then(|| ends.iter().all(has))
}

#[cfg(test)]
mod tests {
    use model::media::{MediaModel, RepresentationModel, TrackKind, TrackModel};
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::{Bench, fails, passes, silent};

    fn film() -> Media {
        let of = RepresentationModel { bits_per_s: 1_000_000, median_bytes: 500_000 };
        let kind = TrackKind::Video;
        let track = TrackModel { kind, representations: vec![of], spread_share: 0.0, scenes: None };
        let model = MediaModel {
            segment_ns: 4_000_000_000,
            length_ns: 16_000_000_000,
            seed: 1,
            tracks: vec![track],
            hds: Some(HdsModel { fragments_per_segment: 5, gaps: vec![3] }),
        };
        Media { titles: 7, ..Media::modelled("film", model) }
    }

    fn requesting(paths: &[&str]) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1]);
        bench.plan.media = vec![film()];
        let load = bench.plan.workloads[0].workload.as_loop_mut().unwrap();
        load.paths = paths.iter().map(|path| (*path).to_owned()).collect();
        bench
    }

    #[test]
    fn fragments_that_exist_pass_and_other_content_is_not_judged() {
        passes("url_list", &requesting(&["/media/film/Seg1-Frag1", "/media/film/{random:1-7}/Seg1-Frag2"]));
        silent("url_list", &requesting(&["/a", "/media/other/Seg1-Frag3"]));
    }

    #[test]
    fn counted_numbers_of_fragments_and_titles_invalidate() {
        let found = fails("url_list", &requesting(&["/media/film/Seg1-Frag2", "/media/film/Seg1-Frag3"]));
        assert_eq!(found.measured, "1 of 2 paths not in the media, such as `/media/film/Seg1-Frag3`");
        fails("url_list", &requesting(&["/media/film/{random:1-8}/Seg1-Frag1"]));
    }
}
