//! The report of a measured study in real headless Chromium. The tests of `report` have the rules for pages.

#[path = "../../../report/tests/report/chromium.rs"]
pub(crate) mod chromium;
#[path = "../../../report/tests/report/looks.rs"]
pub(crate) mod looks;

use crate::quick;
use chromium::{Browser, Screen};
use looks::{
    assert_hover_tells_values, assert_keyboard_reaches_all, assert_legends_work,
    assert_screen_reader_finds_its_way, flaws_everywhere,
};

#[test]
fn the_report_is_readable_everywhere_and_does_nothing() {
    let report = quick::result().join("report.html");
    let bytes = std::fs::metadata(&report).unwrap().len();
    assert!(bytes <= 3_000_000, "{bytes} bytes, more than an attachment may have");
    let mut browser = Browser::start();
    let mut page = browser.open(&report, Screen::DESK);
    let flaws = flaws_everywhere(&mut page);
    assert!(flaws.is_empty(), "{}", flaws.join("\n"));
    assert_legends_work(&mut page);
    assert_hover_tells_values(&mut page);
    assert_keyboard_reaches_all(&mut page);
    assert_screen_reader_finds_its_way(&mut page);
    assert_eq!(page.misdeeds(), Vec::<String>::new());
    let count =
        page.evaluate("['table', 'figure', 'svg[role=img]'].map(e => document.querySelectorAll(e).length)");
    assert!(count.as_array().unwrap().iter().all(|count| count.as_u64() >= Some(4)), "{count}");
    let text = page.evaluate("document.body.innerText.toLowerCase()");
    for words in ["north-carolina", "h1s", "h3", "page load time"] {
        assert!(text.as_str().unwrap().contains(words), "{words}");
    }
}
