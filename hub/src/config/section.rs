//! The macro behind every section of the settings: one definition gives the struct, its defaults, and the text
//! that `config/default.toml` is made of.

/// What a section knows about itself, beside its values.
pub trait Section: Default + serde::Serialize {
    /// The doc comment of the section, line by line.
    const ABOUT: &'static [&'static str];
    /// Its keys in the order they are written.
    const KEYS: &'static [Key];
}

/// One key of a section.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The key as it is written in a file.
    pub name: &'static str,
    /// Its doc comment, line by line.
    pub about: &'static [&'static str],
}

/// Defines a section: each key has a doc comment (with its unit) and a default, or it does not compile.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        pub struct $Section:ident {
            $( $(#[doc = $doc:literal])+ pub $key:ident: $Type:ty = $default:expr, )+
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
        }
    };
}
pub(crate) use section;
