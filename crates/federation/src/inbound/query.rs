//! Parameters of the calls without a body: those of the call, each at most once, and no others.

use std::borrow::Cow;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::http_signature::Target;
use url::form_urlencoded;

/// The values of the parameters of these names, in this order. They are those that the signature covers.
pub(crate) fn read<const N: usize>(
    target: &Target,
    names: [&'static str; N],
) -> Result<[Option<String>; N], Refusal> {
    let query = target.query.strip_prefix('?').unwrap_or(&target.query);
    let mut values = [const { None }; N];
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let slot = values.iter_mut().zip(names).find(|(_, known)| *known == name);
        let Some((slot, known)) = slot else {
            let detail = "The query holds a parameter that this call does not know.";
            return Err(Refusal::new(ErrorCode::ParameterUnknown, detail));
        };
        if slot.replace(Cow::into_owned(value)).is_some() {
            return Err(invalid(known, "is given once"));
        }
    }
    Ok(values)
}

/// A parameter that has to be there.
pub(crate) fn given(value: Option<String>, name: &'static str) -> Result<String, Refusal> {
    value.ok_or_else(|| invalid(name, "is needed"))
}

/// `parameter_invalid`.
pub(crate) fn invalid(name: &'static str, should: &'static str) -> Refusal {
    Refusal::new(ErrorCode::ParameterInvalid, format!("{name} {should}")).with("parameter", name)
}
