//! Fuzzes `aip_protocol_fuzz::market`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aip_protocol_fuzz::market(data));
