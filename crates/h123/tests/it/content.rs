//! Media: made by ffmpeg, modelled, and served.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::tool::{Ended, H123, check, folder, machine, median, summary};

fn content(folder: &Path, args: &[&str]) -> Ended {
    let mut command = Command::new(H123);
    command.arg("content").args(args).env("XDG_CACHE_HOME", folder.join("cache")).current_dir(folder);
    Ended::of(command.output().unwrap())
}

/// What ffprobe says about the streams of a file.
fn streams(file: &Path) -> Vec<Value> {
    let probe = Command::new("ffprobe")
        .args(["-v", "error", "-show_streams", "-of", "json"])
        .arg(file)
        .output()
        .unwrap();
    assert!(probe.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&probe.stderr));
    let answer: Value = serde_json::from_slice(&probe.stdout).unwrap();
    answer["streams"].as_array().unwrap().clone()
}

/// How many frames of a kind a player decodes, without any error.
fn decoded(file: &Path, stream: &str) -> u64 {
    let probe = Command::new("ffprobe")
        .args(["-v", "error", "-count_frames", "-select_streams", stream, "-show_entries"])
        .args(["stream=nb_read_frames", "-of", "csv=p=0"])
        .arg(file)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&probe.stderr);
    assert!(probe.status.success() && errors.is_empty(), "{}: {errors}", file.display());
    let text = String::from_utf8(probe.stdout).unwrap();
    text.trim().trim_end_matches(',').lines().next().unwrap().trim_end_matches(',').parse().unwrap()
}

/// The first study's rungs, short: what was made is what was asked for, in every format.
#[test]
fn made_media_has_the_requested_encodings() {
    let place = folder();
    let film = place.path().join("film");
    let options = ["--length", "11.52s", "--video", "1080i@8Mbit/s", "--ts", "--hds", "--hds-gap", "2"];
    let make = |name| content(place.path(), &[&["make", name], &options[..]].concat());
    let made = make("film");
    assert_eq!(made.code, 0, "{}", made.stderr);

    // A segment is not complete without its initialization.
    let joined = |representation: &str| {
        let parts = ["init.mp4", "1.m4s", "2.m4s", "3.m4s"];
        let bytes = parts.map(|part| fs::read(film.join(representation).join(part)).unwrap()).concat();
        let path = place.path().join(format!("{representation}.mp4"));
        fs::write(&path, bytes).unwrap();
        path
    };
    let (video, audio) = (joined("video-8000k"), joined("audio-128k"));
    let stream = &streams(&video)[0];
    assert_eq!((&stream["codec_name"], &stream["profile"]), (&"h264".into(), &"High".into()));
    assert_eq!((&stream["level"], &stream["field_order"]), (&40.into(), &"tt".into()));
    assert_eq!((&stream["width"], &stream["height"]), (&1920.into(), &1080.into()));
    assert_eq!(stream["avg_frame_rate"], "25/1");
    let stream = &streams(&audio)[0];
    assert_eq!((&stream["codec_name"], &stream["profile"]), (&"aac".into(), &"LC".into()));
    assert_eq!((&stream["sample_rate"], &stream["channels"]), (&"48000".into(), &2.into()));
    assert_eq!(decoded(&video, "v:0"), 3 * 96, "three segments of 3.84 s");

    for manifest in ["main.m3u8", "ts/main.m3u8"] {
        assert_eq!(decoded(&film.join(manifest), "v:0"), 3 * 96, "{manifest}");
    }
    let fragments: Vec<String> = names(&film.join("hds-static"), "Frag");
    assert_eq!(fragments, ["video-8000kSeg1-Frag1", "video-8000kSeg1-Frag2", "video-8000kSeg1-Frag4"]);
    let lengths =
        fragments.iter().map(|name| fs::metadata(film.join("hds-static").join(name)).unwrap().len());
    let archive = fs::metadata(film.join("hds/video-8000kSeg1.f4f")).unwrap().len();
    assert_eq!(lengths.sum::<u64>(), archive, "the fragments are the archive's");

    // The second time everything comes from the cache, as links.
    let again = make("again");
    assert!(again.stderr.contains("in the cache"), "{}", again.stderr);
    let inode = |name: &str| {
        std::os::unix::fs::MetadataExt::ino(
            &fs::metadata(place.path().join(name).join("audio-128k/1.m4s")).unwrap(),
        )
    };
    assert_eq!(inode("film"), inode("again"));
    let listed = content(place.path(), &["list"]);
    assert!(listed.stdout.contains("video 1080i at 8 Mbit/s"), "{}", listed.stdout);
    assert!(content(place.path(), &["clean"]).stdout.starts_with("removed 1 entry, "));
    assert!(film.join("audio-128k/1.m4s").exists());
}

fn names(folder: &Path, part: &str) -> Vec<String> {
    let entries =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.filter(|name| name.contains(part)).collect();
    names.sort();
    names
}

#[test]
fn the_users_file_is_encoded_and_repeated() {
    let place = folder();
    let clip = place.path().join("clip.mkv");
    let made = Command::new("ffmpeg")
        .args([
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            "testsrc2=size=320x240:rate=30",
            "-t",
            "1",
            "-c:v",
            "libx264",
        ])
        .arg(&clip)
        .status()
        .unwrap();
    assert!(made.success());
    let args = [
        "make",
        "film",
        "--input",
        "clip.mkv",
        "--length",
        "4s",
        "--segment",
        "2s",
        "--video",
        "180p@200kbit/s",
    ];
    let silent = content(place.path(), &args);
    assert_eq!(silent.code, 1, "{}", silent.stderr);
    assert!(silent.stderr.contains("ffmpeg failed"), "it has no sound: {}", silent.stderr);
    assert!(!place.path().join("film").exists());
    let made = content(place.path(), &[&args[..], &["--audio", "none"]].concat());
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert_eq!(decoded(&place.path().join("film/main.m3u8"), "v:0"), 100);
}

#[test]
fn faults_are_named() {
    let place = folder();
    for (args, code, expected) in [
        (&["make", "."][..], 2, ". exists; choose another name or remove it"),
        (&["make", "x", "--segment", "1.5s", "--length", "1s"], 2, "is not a multiple of a frame's 40 ms"),
        (&["make", "x", "--length", "10000h"], 2, "is more than 10 000 segments of 3.84 s"),
        (&["make", "x", "--segment", "2"], 2, "(see `h123 content make --help`)"),
        (&["make", "x", "--video", "4k@8Mbit/s"], 2, "--video: `4k@8Mbit/s` is not an encoding; write lines"),
        (&["make", "x", "--audio", "1Mbit/s"], 2, "--audio: `1Mbit/s` is out of bounds"),
        (&["make", "x", "--modelled", "clop"], 2, "`clop` is not media; did you mean `clip`?"),
        (&["make", "x", "--input", "gone.mp4"], 2, "--input: cannot read gone.mp4"),
    ] {
        let ended = content(place.path(), args);
        assert_eq!(ended.code, code, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
        assert!(!place.path().join("x").exists());
    }
    let mut command = Command::new(H123);
    command.args(["content", "make", "x"]).env("PATH", place.path()).current_dir(place.path());
    let missing = Ended::of(command.env("XDG_CACHE_HOME", place.path()).output().unwrap());
    assert!(
        missing.stderr.contains("ffmpeg is missing; install it: apt-get install ffmpeg"),
        "{}",
        missing.stderr
    );
}

/// timeout(1) sends SIGTERM to the command, and again to its process group.
#[test]
fn a_terminated_command_leaves_nothing() {
    let place = folder();
    let cache = place.path().join("cache/h123/content");
    let mut command = Command::new(H123);
    command.args(["content", "make", "film"]).env("XDG_CACHE_HOME", place.path().join("cache"));
    command.current_dir(place.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let begin = Instant::now();
    while !cache.is_dir() || names(&cache, "new-").is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing is being made");
        std::thread::sleep(Duration::from_millis(10));
    }
    for _ in 0..2 {
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert!(names(&cache, "").is_empty(), "{:?}", names(&cache, ""));
    // One that was killed leaves its folder.
    fs::create_dir(cache.join("new-x")).unwrap();
    fs::write(cache.join("new-x/video.mp4"), [0; 1_000]).unwrap();
    let listed = content(place.path(), &["list"]);
    assert!(listed.stderr.contains("1 unfinished entry, 1 kB"), "{}", listed.stderr);
    let cleaned = content(place.path(), &["clean"]);
    assert_eq!(cleaned.stdout, "removed 0 entries, 0 B; 1 unfinished entry, 1 kB\n");
    assert!(names(&cache, "").is_empty());
}

/// ffmpeg feeds made media to nginx over RTMP, nginx cuts segments, and a player follows them.
#[test]
fn a_film_is_fed_to_nginx_and_watched_live() {
    let _machine = machine();
    let place = folder();
    let args = ["make", "film", "--segment", "1s", "--length", "4s", "--video", "360p@400kbit/s"];
    let made = content(place.path(), &args);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let study = r#"question = "Is a live stream alike?"
metric = "startup_time"
baseline = { variant = "h1s" }
margin = "50%"
runs = 1
[matrix]
variant = ["h1s", "h2"]
server = ["nginx"]
network = ["lan"]
workload = ["watch"]
[media.show]
folder = "film"
live = "30s"
segment = "1s"
[workload.watch]
kind = "player"
manifest = "/media/show/index.m3u8"
latency = "3s"
duration = "5s"
buffer = "4s"
rule = "throughput"
"#;
    fs::write(place.path().join("study.toml"), study).unwrap();
    let run =
        |args: &[&str]| Ended::of(Command::new(H123).args(args).current_dir(place.path()).output().unwrap());
    run(&["run", "study.toml", "--out", "out"]).expect_measured();
    let out = place.path().join("out");
    for (number, cell) in summary(&out)["cells"].as_array().unwrap().iter().enumerate() {
        assert_eq!(check(cell, "status")["result"], "pass", "{cell:#}");
        assert!(median(cell, "startup_time") > 0.0, "{cell:#}");
        let latency_s = median(cell, "live_latency") / 1e9;
        assert!((1.0..10.0).contains(&latency_s), "{latency_s} s: {cell:#}");
        let log = fs::read_to_string(out.join(format!("logs/run-{number:06}/server/access.log"))).unwrap();
        let paths: Vec<String> = log
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["path"].as_str().unwrap().to_owned())
            .collect();
        let of = |suffix: &str| paths.iter().filter(|path| path.ends_with(suffix)).count();
        assert!(of("/media/show/index.m3u8") >= 3, "the playlist is read again and again: {paths:?}");
        assert!(of(".ts") >= 4, "{paths:?}");
    }
    let refused = run(&["plan", "study.toml", "--server", "origin"]);
    let expected = "the server `origin` takes no feeds, so that it cannot serve the live media `show`";
    assert!(refused.code == 2 && refused.stderr.contains(expected), "{}", refused.stderr);
}

/// A loop over segments of modelled media and of media in a folder, from a server of files.
#[test]
fn servers_of_files_serve_media() {
    let _machine = machine();
    let place = folder();
    let made = content(place.path(), &["make", "film", "--modelled", "clip"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let study = r#"question = "Are all segments served?"
metric = "request_time"
baseline = { variant = "h1" }
margin = "5%"
runs = 1
[matrix]
variant = ["h1", "h2"]
server = ["nginx"]
network = ["lan"]
workload = ["segments"]
[media.made]
folder = "film"
[workload.segments]
kind = "closed"
paths = ["/media/made/video-1000k/1.m4s", "/media/clip/video-1000k/1.m4s", "/media/made/main.m3u8"]
requests = 30
"#;
    fs::write(place.path().join("study.toml"), study).unwrap();
    let mut command = Command::new(H123);
    command.args(["run", "study.toml", "--out", "out"]).current_dir(place.path());
    Ended::of(command.output().unwrap()).expect_measured();
    let file = |name: &str| fs::metadata(place.path().join("film").join(name)).unwrap().len();
    let bytes = 10 * (2 * file("video-1000k/1.m4s") + file("main.m3u8"));
    let out = place.path().join("out");
    for (run, cell) in summary(&out)["cells"].as_array().unwrap().iter().enumerate() {
        assert_eq!(check(cell, "status")["result"], "pass", "{cell:#}");
        assert_eq!(median(cell, "requests"), 30.0, "{cell:#}");
        let log = fs::read_to_string(out.join(format!("logs/run-{run:06}/server/access.log"))).unwrap();
        let sent = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_media = sent.filter(|line| line["path"].as_str().unwrap().starts_with("/media/"));
        assert_eq!(of_media.map(|line| line["body_bytes"].as_u64().unwrap()).sum::<u64>(), bytes, "{log}");
    }
    fs::remove_file(place.path().join("film/video-1000k/7.m4s")).unwrap();
    let mut command = Command::new(H123);
    let refused = Ended::of(command.args(["plan", "study.toml"]).current_dir(place.path()).output().unwrap());
    let expected = "it lists /media/made/video-1000k/7.m4s, which does not exist";
    assert!(refused.code == 2 && refused.stderr.contains(expected), "{}", refused.stderr);
}
