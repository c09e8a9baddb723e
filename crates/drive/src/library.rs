//! A library of many titles with the bytes of one: hard links to its files.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Makes the titles `1` to `titles` in the folder of media: folders with hard links to all its files.
///
/// All titles share the blocks of one on the disk and in the page cache: a title costs only its folders. A
/// library that exists is completed.
///
/// # Errors
/// The file system has no hard links, or too few for one file.
pub fn link_titles(folder: &Path, titles: u32) -> Result<()> {
    let mut files = Vec::new();
    list(folder, Path::new(""), titles, &mut files)?;
    for title in 1..=titles {
        let own = folder.join(title.to_string());
        let mut made = PathBuf::new();
        for file in &files {
            let link = own.join(file);
            if let Some(parent) = link.parent().filter(|parent| *parent != made) {
                fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
                made = parent.to_owned();
            }
            let (file, context) = (folder.join(file), || {
                format!(
                    "cannot make {} a hard link; write the result to a file system that has them, or use fewer titles",
                    link.display()
                )
            });
            match fs::hard_link(&file, &link) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if fs::metadata(&file)?.ino() != fs::symlink_metadata(&link)?.ino() {
                        fs::remove_file(&link).with_context(context)?;
                        fs::hard_link(&file, &link).with_context(context)?;
                    }
                }
                linked => linked.with_context(context)?,
            }
        }
    }
    Ok(())
}

/// Lists the files below `folder` with their paths from there, without those of titles.
fn list(folder: &Path, below: &Path, titles: u32, files: &mut Vec<PathBuf>) -> Result<()> {
    let path = folder.join(below);
    for entry in fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.parse::<u32>().ok());
        let is_title = number.is_some_and(|number| (1..=titles).contains(&number));
        match entry.file_type()? {
            kind if kind.is_dir() && below.as_os_str().is_empty() && is_title => {}
            kind if kind.is_dir() => list(folder, &below.join(name), titles, files)?,
            _ => files.push(below.join(name)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The bytes that everything below a folder takes on the disk.
    fn disk_bytes(folder: &Path, seen: &mut BTreeSet<u64>) -> u64 {
        let mut sum = fs::metadata(folder).unwrap().blocks() * 512;
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                sum += disk_bytes(&entry.path(), seen);
            } else if seen.insert(metadata.ino()) {
                sum += metadata.blocks() * 512;
            }
        }
        sum
    }

    /// A film of five fragments of 3.2 MB: the archive with its index, and the fragments as files.
    fn write_film(folder: &Path) -> BTreeSet<String> {
        let mut names = BTreeSet::from(["index.bootstrap".to_owned(), "Seg1.f4f".to_owned()]);
        fs::write(folder.join("index.bootstrap"), [1; 200]).unwrap();
        fs::write(folder.join("Seg1.f4f"), vec![2; 16_000_000]).unwrap();
        for number in 1..=5 {
            let name = format!("Seg1-Frag{number}");
            fs::write(folder.join(&name), vec![number; 3_200_000]).unwrap();
            names.insert(name);
        }
        names
    }

    #[test]
    fn seven_thousand_titles_take_less_than_100_megabytes() {
        let folder = tempfile::tempdir().unwrap();
        let names = write_film(folder.path());
        link_titles(folder.path(), 7_000).unwrap();
        let disk = disk_bytes(folder.path(), &mut BTreeSet::new());
        assert!((32_000_000..100_000_000).contains(&disk), "{disk} bytes");
        for title in [1, 4_321, 7_000] {
            let own = folder.path().join(title.to_string());
            let found =
                fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
            assert_eq!(found.collect::<BTreeSet<_>>(), names, "{title}");
            assert_eq!(fs::read(own.join("Seg1-Frag3")).unwrap(), vec![3; 3_200_000]);
        }
        assert!(!folder.path().join("7001").exists());
    }

    #[test]
    fn a_library_is_completed_and_follows_its_film() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("video")).unwrap();
        fs::write(path("video/1.m4s"), "old").unwrap();
        link_titles(folder.path(), 2).unwrap();
        // Another file of the same name.
        fs::remove_file(path("video/1.m4s")).unwrap();
        fs::write(path("video/1.m4s"), "new").unwrap();
        link_titles(folder.path(), 3).unwrap();
        for title in 1..=3 {
            assert_eq!(fs::read_to_string(path(&format!("{title}/video/1.m4s"))).unwrap(), "new");
            assert!(!path(&format!("{title}/1")).exists(), "titles are not part of titles");
        }
    }
}
