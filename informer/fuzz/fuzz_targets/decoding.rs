#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| homeostat_informer_fuzz::decoding(data));
