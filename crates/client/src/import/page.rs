//! The JSON-LD of a web page: what its `script` elements of that type hold. The page itself is not looked at.

/// The type that such a script names.
pub(super) const JSON_LD: &str = "application/ld+json";

/// The texts of the scripts, in their order.
pub(super) fn scripts(page: &str) -> Vec<&str> {
    // In ASCII only, so that every place is the same in both.
    let lower = page.to_ascii_lowercase();
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(script) = next(&lower, from) {
        if script.is_json_ld {
            found.extend(page.get(script.start..script.end));
        }
        from = script.end;
    }
    found
}

/// A script element: where its text begins and ends.
struct Script {
    start: usize,
    end: usize,
    is_json_ld: bool,
}

fn next(lower: &str, from: usize) -> Option<Script> {
    let open = from + lower.get(from..)?.find("<script")?;
    let start = open + lower.get(open..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</script")?;
    Some(Script {
        start,
        end,
        is_json_ld: lower.get(open..start)?.contains(JSON_LD),
    })
}
