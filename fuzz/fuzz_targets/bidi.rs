#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| h123_fuzz::run("bidi", data));
