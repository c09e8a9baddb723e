//! Types for the error codes of a protocol: one table with names and numbers makes constants, names and
//! texts.

/// Declares a type with a constant for each registered code. It is displayed as the code's name, or as
/// `$unknown` and the number.
macro_rules! error_codes {
    (
        $(#[$attribute:meta])*
        $type:ident($number:ty), $unknown:literal: $($name:ident = $value:literal,)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $type(pub $number);

        #[expect(missing_docs, reason = "the registered names")]
        impl $type {
            $(pub const $name: $type = $type($value);)*

            /// The registered name.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!($unknown, " {:#x}"), self.0),
                }
            }
        }
    };
}

pub(crate) use error_codes;
