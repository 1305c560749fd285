//! The macro behind every section of the settings: one definition gives the struct, its defaults, the range of each
//! number, and the text that `config/default.toml` is made of.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// What a section knows about itself, beside its values.
pub trait Section: Default + serde::Serialize {
    /// The doc comment of the section, line by line.
    const ABOUT: &'static [&'static str];
    /// Its keys in the order they are written.
    const KEYS: &'static [Key];

    /// Says for each number that is out of its range what the range is; `section` is the name in the file.
    fn check_ranges(&self, section: &str, found: &mut Vec<String>);
}

/// One key of a section.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The key as it is written in a file.
    pub name: &'static str,
    /// Its doc comment, line by line.
    pub about: &'static [&'static str],
}

/// The sentence about a number that is out of its range.
pub(super) fn out_of_range<N>(section: &str, key: &str, value: N, range: RangeInclusive<N>) -> Option<String>
where
    N: PartialOrd + Display + Copy,
{
    let (least, most) = (range.start(), range.end());
    (!range.contains(&value))
        .then(|| format!("`{section}.{key}` = {value} is out of range: use {least} to {most}"))
}

/// Defines a section: each key has a doc comment (with its unit) and a default, or it does not compile. A number can
/// have a range, outside of which a hub would not work, or not speak AIP/1 any more.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        pub struct $Section:ident {
            $( $(#[doc = $doc:literal])+ pub $key:ident: $Type:ty = $default:expr $(, in $range:expr)?; )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $Section {
            $( $(#[doc = $doc])+ pub $key: $Type, )+
        }

        impl Default for $Section {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        impl $crate::config::section::Section for $Section {
            const ABOUT: &'static [&'static str] = &[$($about),+];
            const KEYS: &'static [$crate::config::section::Key] = &[
                $( $crate::config::section::Key { name: stringify!($key), about: &[$($doc),+] }, )+
            ];

            fn check_ranges(&self, section: &str, found: &mut Vec<String>) {
                $( $(
                    let problem = super::section::out_of_range(section, stringify!($key), self.$key, $range);
                    found.extend(problem);
                )? )+
                // A section without a range uses neither.
                let _ = (section, found);
            }
        }
    };
}
pub(crate) use section;
