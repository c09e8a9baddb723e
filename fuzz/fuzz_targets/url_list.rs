#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        // What cannot be read is refused with a line and a reason.
        let _ = workload::formats::url_list::parse(text).map_err(|error| error.to_string());
    }
});
