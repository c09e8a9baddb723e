//! The requirements on a page in a real browser, shared by the tests of fabricated and measured reports.

use serde_json::Value;

use super::chromium::{Page, Screen};

const PROBE: &str = include_str!("probe.js");

/// What is wrong with how the page looks on a screen.
pub(crate) fn flaws(page: &mut Page<'_>, screen: Screen) -> Vec<String> {
    page.show_on(screen);
    let probed = page.evaluate(PROBE);
    let found = probed["found"].as_array().unwrap().iter();
    found.map(|flaw| format!("{screen:?}: {}", flaw.as_str().unwrap())).collect()
}

/// What is wrong with the page on a desk, in the dark, on a phone, and on paper.
pub(crate) fn flaws_everywhere(page: &mut Page<'_>) -> Vec<String> {
    let screens = [Screen::PHONE, Screen::PAPER, Screen::DARK, Screen::DESK];
    screens.into_iter().flat_map(|screen| flaws(page, screen)).collect()
}

/// The figures of the page.
pub(crate) fn figures(page: &mut Page<'_>) -> Vec<String> {
    let ids = page.evaluate("[...document.querySelectorAll('figure')].map(figure => figure.id)");
    ids.as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// Each entry of a legend hides its series and no other, by the pointer and by the keyboard, and shows it
/// again.
pub(crate) fn assert_legends_work(page: &mut Page<'_>) {
    page.show_on(Screen::DESK);
    for id in figures(page) {
        let state = |page: &mut Page<'_>| -> Value {
            page.evaluate(&format!(
                "(() => {{ const figure = document.getElementById('{id}'); \
                 return [...figure.querySelectorAll('.legend input')].map(box => {{ \
                   const series = 's-' + box.className.replace('t-', ''); \
                   const parts = [...figure.querySelectorAll('.panels .series.' + series)]; \
                   return [parts.length, parts.filter(part => getComputedStyle(part).display !== 'none').length]; }}); }})()"
            ))
        };
        let before = state(page);
        for (index, parts) in before.as_array().unwrap().iter().enumerate() {
            assert!(
                parts[0].as_u64() > Some(0) && parts[0] == parts[1],
                "{id}: a key without its series: {parts}"
            );
            let label = format!("document.querySelectorAll('#{id} .legend label')[{index}]");
            page.click(&label);
            let mut hidden = before.clone();
            hidden[index][1] = 0.into();
            assert_eq!(state(page), hidden, "{id}: key {index}, clicked");
            page.evaluate(&format!("{label}.querySelector('input').focus()"));
            page.press("Space");
            assert_eq!(state(page), before, "{id}: key {index}, by the keyboard again");
        }
    }
}

/// Every figure has hover texts with values. The middle of a curve's box is mostly not on the curve.
pub(crate) fn assert_hover_tells_values(page: &mut Page<'_>) {
    page.show_on(Screen::DESK);
    for id in figures(page) {
        // The mark of most extent both ways; one of a pixel is nothing to aim at.
        let mark = format!(
            "[...document.querySelectorAll('#{id} .panels g > title')].flatMap(title => \
               [...title.parentElement.querySelectorAll(':scope > :not(title):not(text):not(g):not(.curve)')]) \
             .map(e => [e, e.getBoundingClientRect()]).map(([e, box]) => [e, Math.min(box.width, box.height)]) \
             .sort((a, b) => b[1] - a[1])[0][0]"
        );
        page.hover(&mark);
        let told = page.evaluate(
            "[...document.querySelectorAll(':hover')].reverse().map(e => e.querySelector(':scope > title')) \
             .filter(title => title).map(title => title.textContent)[0] || ''",
        );
        let told = told.as_str().unwrap();
        assert!(told.contains(|c: char| c.is_ascii_digit()), "{id}: a pointer on a mark finds `{told}`");
    }
}

/// The keyboard reaches everything that can be used, and it is seen where it is.
pub(crate) fn assert_keyboard_reaches_all(page: &mut Page<'_>) {
    page.show_on(Screen::DESK);
    page.evaluate(
        "document.activeElement.blur(), document.querySelector('a[href]').focus({ focusVisible: true })",
    );
    let wanted = page.evaluate(
        "[...document.querySelectorAll('a[href], input, summary, [tabindex=\"0\"]')] \
         .filter(e => e.checkVisibility()).length",
    );
    let mut reached = 0;
    loop {
        let at = page.evaluate(
            "(() => { const e = document.activeElement; if (!e || e === document.body) return null; \
             const seen = getComputedStyle(e); \
             const box = e.getBoundingClientRect(); \
             return { ring: seen.outlineStyle !== 'none' && parseFloat(seen.outlineWidth) >= 2, tag: e.outerHTML.slice(0, 90), \
               shown: box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight }; })()",
        );
        if at.is_null() {
            break;
        }
        assert!(at["ring"] == true && at["shown"] == true, "the keyboard focus {at} is not visible");
        reached += 1;
        page.press("Tab");
        assert!(reached <= 2000, "the keyboard never leaves the page");
    }
    // A region that happens to be too long for its place can be reached too.
    assert!(Some(reached) >= wanted.as_u64(), "the keyboard reaches {reached} of {wanted}");
}

/// The page for a screen reader: landmarks, one first heading, no skipped level, names for everything without
/// text.
pub(crate) fn assert_screen_reader_finds_its_way(page: &mut Page<'_>) {
    page.show_on(Screen::DESK);
    let tree = page.ask("Accessibility.getFullAXTree", serde_json::json!({}));
    let nodes: Vec<&Value> =
        tree["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] != true).collect();
    let role = |node: &Value| node["role"]["value"].as_str().unwrap_or_default().to_owned();
    let name = |node: &Value| node["name"]["value"].as_str().unwrap_or_default().trim().to_owned();
    for landmark in ["banner", "main", "contentinfo", "navigation"] {
        assert_eq!(nodes.iter().filter(|node| role(node) == landmark).count(), 1, "{landmark}");
    }
    let needs_name =
        ["image", "img", "table", "checkbox", "link", "region", "navigation", "heading", "figure"];
    for node in nodes.iter().filter(|node| needs_name.contains(&role(node).as_str())) {
        assert!(!name(node).is_empty(), "this has no name: {node}");
    }
    let levels: Vec<i64> = nodes
        .iter()
        .filter(|node| role(node) == "heading")
        .filter_map(|node| {
            let level = node["properties"].as_array()?.iter().find(|property| property["name"] == "level")?;
            level["value"]["value"].as_i64()
        })
        .collect();
    assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{levels:?}");
    assert!(
        levels.windows(2).all(|pair| pair[1] <= pair[0] + 1),
        "a heading's level is left out: {levels:?}"
    );
}
