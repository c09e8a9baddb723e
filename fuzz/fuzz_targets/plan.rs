#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| path::fuzz_targets::plan(data));
