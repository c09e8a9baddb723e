//! Reports in real headless Chromium: silent, whole, readable on a desk, on a phone, in the dark and on
//! paper.

use std::path::PathBuf;

use report::render;
use tempfile::TempDir;

use crate::chromium::{Browser, Screen};
use crate::looks::{
    assert_hover_tells_values, assert_keyboard_reaches_all, assert_legends_work,
    assert_screen_reader_finds_its_way, flaws, flaws_everywhere,
};
use crate::{across, fabricated, figures, hostile, topologies};

/// The policy that keeps a page from running or fetching anything, whatever is in it.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\"";

/// Narrower than any drawing may become.
const SMALL_PHONE: Screen = Screen { width: 360, ..Screen::PHONE };

fn file(folder: &TempDir, name: &str, html: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, html).unwrap();
    path
}

#[test]
fn reports_are_readable_everywhere_and_do_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    let cases = [
        ("well", fabricated::all_well()),
        ("troubled", fabricated::troubled()),
        ("spread", figures::watched(figures::publishing(figures::spread(1_000)))),
        ("shared", topologies::measured_on("shared", "client", "server")),
        ("videos", figures::videos()),
        ("servers", figures::servers()),
        ("long", figures::long_names()),
        ("levels", fabricated::of_networks(8)),
        ("played", figures::videos_of_servers()),
        ("networks", fabricated::over_networks(&["5", "20", "80"], &["0", "0.5", "2"])),
    ];
    for (name, fabricated) in cases {
        let html = render(&fabricated.input()).unwrap().html;
        let mut page = browser.open(&file(&folder, &format!("{name}.html"), &html), Screen::DESK);
        let flaws = flaws_everywhere(&mut page);
        assert!(flaws.is_empty(), "{name}:\n{}", flaws.join("\n"));
        assert_legends_work(&mut page);
        assert_hover_tells_values(&mut page);
        assert_keyboard_reaches_all(&mut page);
        assert_screen_reader_finds_its_way(&mut page);
        assert_eq!(page.misdeeds(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn the_page_of_two_results_is_as_readable() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    for (name, across) in [("across", across::fabricated()), ("wide", across::wide())] {
        let html = across::page(&across, "");
        let mut page = browser.open(&file(&folder, &format!("{name}.html"), &html), Screen::DESK);
        let mut found = flaws_everywhere(&mut page);
        found.extend(flaws(&mut page, SMALL_PHONE));
        assert!(found.is_empty(), "{name}:\n{}", found.join("\n"));
        assert_hover_tells_values(&mut page);
        assert_keyboard_reaches_all(&mut page);
        assert_screen_reader_finds_its_way(&mut page);
        assert_eq!(page.misdeeds(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn the_reports_that_are_shown_as_examples_are_as_readable() {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").canonicalize().unwrap();
    let mut browser = Browser::start();
    for name in ["quick.html", "distance-and-loss.html"] {
        let bytes = std::fs::metadata(folder.join(name)).unwrap().len();
        assert!(bytes <= 3_000_000, "{name} has {bytes} bytes, more than an attachment may have");
        let mut page = browser.open(&folder.join(name), Screen::DESK);
        let flaws = flaws_everywhere(&mut page);
        assert!(flaws.is_empty(), "{name}:\n{}", flaws.join("\n"));
        assert_eq!(page.misdeeds(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn hostile_strings_run_nothing_even_without_the_policy_against_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    let whole = render(&hostile::fabricated().input()).unwrap().html;
    assert!(whole.contains(POLICY));
    let bare = whole.replace(POLICY, "<meta name=\"none\"");
    let across = across::spoilt(&hostile::HOSTILE.join(" ")).replace(POLICY, "<meta name=\"none\"");
    for (name, html) in [("whole", &whole), ("bare", &bare), ("across", &across)] {
        let mut page = browser.open(&file(&folder, &format!("{name}.html"), html), Screen::DESK);
        // Listeners for a pointer, a click or a key get them.
        assert_hover_tells_values(&mut page);
        assert_legends_work(&mut page);
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)");
        assert_keyboard_reaches_all(&mut page);
        assert_eq!(page.misdeeds(), Vec::<String>::new(), "{name}");
        let ran = page.evaluate(
            "[typeof window.ran, document.querySelectorAll('script, img, iframe, [onmouseover]').length]",
        );
        assert_eq!(ran, serde_json::json!(["undefined", 0]), "{name}");
    }
}

#[test]
fn the_probe_finds_every_flaw() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    let whole = render(&fabricated::small().input()).unwrap().html;
    let bare = whole.replace(POLICY, "<meta name=\"none\"");
    let spoilt = [
        (whole.replace("</main>", "<script>window.ran = 1</script></main>"), "log: "),
        (bare.replace("</main>", "<script>window.ran = 1</script></main>"), "script in file:"),
        (bare.replace("</main>", "<img src=x onerror=alert(1)></main>"), "script in file:"),
        (bare.replace("</main>", "<img src=http://127.0.0.1:9/x></main>"), "request: http://127.0.0.1:9/x"),
    ];
    for (index, (html, expected)) in spoilt.iter().enumerate() {
        let mut page = browser.open(&file(&folder, &format!("misdeed-{index}.html"), html), Screen::DESK);
        let misdeeds = page.misdeeds();
        assert!(misdeeds.iter().any(|misdeed| misdeed.starts_with(expected)), "{expected}: {misdeeds:?}");
    }
    // The same drawing with the labels of its rows one upon the other, too far right, too small, too pale.
    let label = "<text class=\"label\" x=\"18\"";
    assert!(whole.contains(label));
    let second = "<text class=\"tick\" x=\"24\" y=\"52\">overlapping</text><text class=\"label\" x=\"18\"";
    let flawed = [
        (whole.replacen(label, second, 1), "«overlapping» overlap"),
        (whole.replacen(label, "<text class=\"label\" x=\"395\"", 1), "is cut"),
        (whole.replacen(">h3</text>", ">h…</text>", 1), "«h…» is shortened"),
        (whole.replace("</style>", ".figure .tick{font-size:6px}</style>"), "pixels high"),
        (whole.replace("</style>", ".lead{color:#999}</style>"), "has a contrast of 2."),
        (whole.replace("</style>", ".figure .tick{fill:#bbb}</style>"), "has a contrast of 1."),
        (whole.replace("</style>", "h1{width:1400px;max-width:none}</style>"), "pixels wide on 1280"),
        (whole.replace("</style>", ".series *{display:none}</style>"), "is empty"),
    ];
    let on_a_phone = [
        (whole.replace("min-width:24rem", "min-width:0;width:300px"), "pixels high"),
        (whole.replace("no-repeat local", "no-repeat scroll"), "scrolls without a cue"),
        (whole.replace("max-width:100cqi", "max-width:none;white-space:nowrap"), "the caption is cut"),
        (whole.replace(" tabindex=\"0\"", ""), "out of the keyboard's reach"),
    ];
    for (index, (html, expected)) in on_a_phone.iter().enumerate() {
        let mut page = browser.open(&file(&folder, &format!("phone-{index}.html"), html), Screen::PHONE);
        let flaws = flaws(&mut page, Screen::PHONE);
        assert!(flaws.iter().any(|flaw| flaw.contains(expected)), "{expected}: {flaws:#?}");
    }
    for (index, (html, expected)) in flawed.iter().enumerate() {
        let mut page = browser.open(&file(&folder, &format!("flaw-{index}.html"), html), Screen::DESK);
        let flaws = flaws(&mut page, Screen::DESK);
        assert!(flaws.iter().any(|flaw| flaw.contains(expected)), "{expected}: {flaws:#?}");
    }
}
