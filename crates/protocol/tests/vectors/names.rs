//! §1: handles, paths, DIDs.

use aip_protocol::error::Refusal;
use aip_protocol::name::{Did, Handle, parse_identifier};

use crate::support::{expect, run, text};

#[test]
fn handles() {
    run("handles", 34, |vector, _| {
        vector.expect(Handle::parse(text(&vector.input)), |handle, expected| {
            let shown = [
                handle.to_string(),
                handle.did().to_string(),
                handle.encoded(),
                handle.did().encoded(),
            ];
            let wanted = ["handle", "did", "handle_encoded", "did_encoded"].map(|name| text(&expected[name]));
            assert_eq!(shown, wanted, "{}", vector.name);
            assert_eq!(handle.did().handle(), handle);
            assert_eq!(Handle::parse(&handle.encoded()).unwrap(), handle);
        });
    });
}

#[test]
fn paths() {
    run("paths", 13, |vector, _| {
        vector.expect(parse_identifier(text(&vector.input)), |handle, expected| {
            assert_eq!(handle.to_string(), text(&expected["handle"]), "{}", vector.name);
        });
    });
}

type Reader = fn(&str) -> Result<Did, Refusal>;

#[test]
fn dids() {
    run("dids", 13, |vector, _| {
        let readers: [(&str, Reader); 2] = [("signed", Did::parse), ("api", Did::parse_input)];
        for (place, parse) in readers {
            let name = format!("{}, {place}", vector.name);
            expect(
                &name,
                &vector.expected[place],
                parse(text(&vector.input)),
                |did, expected| {
                    assert_eq!(did.handle().to_string(), text(&expected["handle"]), "{name}");
                },
            );
        }
    });
}
