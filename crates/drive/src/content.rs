//! Pages and videos as files, for servers that serve a folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use model::Page;
use model::media::{Media, MediaSource};
use workload::hds_media::HdsPackage;

use crate::library::link_titles;
use crate::links::{create_parent, link, link_folder};
use crate::media::feed::write_feed;

/// Writes every resource of the pages below `folder`, once per study, for servers that serve files.
///
/// # Errors
/// A path leaves the folder, or a file cannot be written.
pub fn write_content(folder: &Path, pages: &[Page]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for page in pages {
        for (name, _, body) in workload::content::files(page) {
            if Path::new(&name).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
                bail!(
                    "page `{}` contains the path `{name}`, which leaves the folder; use a relative path without `..`",
                    page.name
                );
            }
            let path = folder.join(&name);
            let context = || format!("cannot write {}", path.display());
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).with_context(context)?;
            }
            fs::write(&path, body).with_context(context)?;
        }
    }
    Ok(())
}

/// Writes the segments of videos below `folder`, by their paths and lengths, with the same bytes as the
/// built-in origin.
///
/// # Errors
/// A file cannot be written.
pub fn write_segments(folder: &Path, segments: &BTreeMap<String, u64>) -> Result<()> {
    for (path, bytes) in segments {
        write_pattern(&folder.join(path.trim_start_matches('/')), *bytes)?;
    }
    Ok(())
}

/// Writes media below `folder`, by its paths, with the same bytes as the built-in origin. Modelled segments
/// of the same length are one file with several names.
///
/// # Errors
/// A file cannot be written.
pub fn write_media(folder: &Path, media: &Media) -> Result<()> {
    match &media.source {
        MediaSource::Modelled(_) => match HdsPackage::new(media) {
            Some(package) => write_hds(&folder.join(media.folder().trim_matches('/')), media, &package)?,
            None => write_modelled(folder, media)?,
        },
        MediaSource::Folder(of) => {
            let to = folder.join(media.folder().trim_matches('/'));
            link_folder(Path::new(&of.folder), &to, None)?;
        }
        MediaSource::Feed(feed) => {
            let from = Path::new(&feed.folder.folder).join(&feed.folder.manifest);
            let to = feed_file(folder, media);
            create_parent(&to)?;
            write_feed(&from, &to, media.presentation.duration_ns())?;
        }
        MediaSource::Site(_) => {}
    }
    match media.titles {
        0 => Ok(()),
        titles => link_titles(&folder.join(media.folder().trim_matches('/')), titles),
    }
}

/// The file that ffmpeg feeds to servers, in a folder of content.
pub(crate) fn feed_file(folder: &Path, media: &Media) -> PathBuf {
    folder.join(media.folder().trim_matches('/')).join("feed.mp4")
}

/// Writes each fragment as a file, the archives that contain the same fragments, and their indexes.
fn write_hds(folder: &Path, media: &Media, package: &HdsPackage) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let write = |name: &str, bytes: Vec<u8>| {
        let path = folder.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };
    write("manifest.f4m", package.manifest(media).into_bytes())?;
    write("index.bootstrap", package.bootstrap_bytes())?;
    for (segment, fragments) in &package.segments {
        write(&format!("Seg{segment}.f4x"), package.index_bytes(*segment))?;
        let path = folder.join(format!("Seg{segment}.f4f"));
        let context = || format!("cannot write {}", path.display());
        let mut archive = File::create(&path).with_context(context)?;
        for fragment in fragments {
            let name = fragment.path.rsplit('/').next().unwrap_or_default();
            let mut file = File::create(folder.join(name)).with_context(context)?;
            for part in fragment.parts() {
                file.write_all(&part).and_then(|()| archive.write_all(&part)).with_context(context)?;
            }
        }
    }
    Ok(())
}

fn write_modelled(folder: &Path, media: &Media) -> Result<()> {
    for manifest in workload::media::manifests(media) {
        let path = folder.join(manifest.path.trim_start_matches('/'));
        create_parent(&path)?;
        fs::write(&path, manifest.text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut known: BTreeMap<u64, PathBuf> = BTreeMap::new();
    for (path, bytes) in media.presentation.files() {
        let path = folder.join(path.trim_start_matches('/'));
        match known.get(&bytes) {
            Some(other) => link(other, &path)?,
            None => {
                write_pattern(&path, bytes)?;
                known.insert(bytes, path);
            }
        }
    }
    Ok(())
}

fn write_pattern(path: &Path, bytes: u64) -> Result<()> {
    let context = || format!("cannot write {}", path.display());
    create_parent(path)?;
    let mut file = File::create(path).with_context(context)?;
    for chunk in workload::content::pattern_body(bytes, 0) {
        file.write_all(&chunk).with_context(context)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_files_of_their_length() {
        let folder = std::env::temp_dir().join(format!("h123-segments-{}", std::process::id()));
        let segments = BTreeMap::from([("/bytes/5".to_owned(), 5), ("/bytes/200000".to_owned(), 200_000)]);
        write_segments(&folder, &segments).unwrap();
        for (path, bytes) in &segments {
            assert_eq!(fs::metadata(folder.join(&path[1..])).unwrap().len(), *bytes);
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_library_of_hds_is_written_twice() {
        let folder = tempfile::tempdir().unwrap();
        let text = "title = 'x'\nsegment = '4s'\nlength = '20s'\ntitles = 3\nhds = { fragments = 4, gaps = [3] }\n\
                    [video]\nladder = ['80kbit/s']\n";
        let media = Media::parse("film", model::error::Source { file: "x.toml", text }).unwrap();
        // As when a study is continued.
        for _ in 0..2 {
            write_media(folder.path(), &media).unwrap();
        }
        for title in ["", "1/", "3/"] {
            let read =
                |name: &str| fs::read(folder.path().join(format!("media/film/{title}{name}"))).unwrap();
            let fragments = ["Seg1-Frag1", "Seg1-Frag2", "Seg1-Frag4"].map(read).concat();
            assert!(read("Seg1.f4f") == fragments, "the archive is its fragments");
            assert!(read("Seg2.f4f") == [read("Seg2-Frag5"), read("Seg2-Frag6")].concat());
            assert!(!read("Seg1.f4x").is_empty() && !read("index.bootstrap").is_empty());
        }
        assert!(
            !folder.path().join("media/film/Seg1-Frag3").exists()
                && !folder.path().join("media/film/4").exists()
        );
    }

    #[test]
    fn modelled_media_is_written_with_the_lengths_of_the_plan() {
        let folder = std::env::temp_dir().join(format!("h123-media-{}", std::process::id()));
        let text =
            "title = 'x'\nsegment = '2s'\nlength = '7s'\n[video]\nladder = ['80kbit/s', '160kbit/s']\n";
        let source = model::error::Source { file: "x.toml", text };
        let media = Media::parse("film", source).unwrap();
        write_media(&folder, &media).unwrap();
        let at = |path: &str| folder.join(path.trim_start_matches('/'));
        for (path, bytes) in media.presentation.files() {
            let body = fs::read(at(path)).unwrap();
            let expected: Vec<u8> = workload::content::pattern_body(bytes, 0).flatten().collect();
            assert!(body == expected, "{path} has {} bytes", body.len());
        }
        let inode = |path: &str| std::os::unix::fs::MetadataExt::ino(&fs::metadata(at(path)).unwrap());
        let [one, other, last] =
            ["1", "2", "4"].map(|number| inode(&format!("/media/film/video-80k/{number}.m4s")));
        assert!(one == other && one != last, "segments of the same length are one file");
        for manifest in workload::media::manifests(&media) {
            assert_eq!(fs::read_to_string(at(&manifest.path)).unwrap(), manifest.text);
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
