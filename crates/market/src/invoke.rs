//! The order of an invocation: what is checked, paid for, called and answered, and when.
