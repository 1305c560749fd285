//! Fuzzes `aip_protocol_fuzz::x402`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aip_protocol_fuzz::x402(data));
