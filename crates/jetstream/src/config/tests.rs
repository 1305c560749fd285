//! Secrets stay out of what options print, and options that cannot be used are refused.

use super::*;

#[test]
fn what_is_shown_of_options_holds_no_secret() {
    let options = Options {
        urls: vec!["nats://u:hush1@one:4222".to_owned(), "nats://two:4222".to_owned()],
        login: Login::Password {
            user: "hub".to_owned(),
            password: "hush2".to_owned(),
        },
        ..Options::default()
    };
    let text = format!("{options:?} {:?}", Login::Token("hush3".to_owned()));
    assert!(!text.contains("hush"), "{text}");
    assert!(text.contains("one:4222") && text.contains("two:4222"), "{text}");
}

#[test]
fn values_that_cannot_work_are_refused() {
    let with = |change: fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        options.check()
    };
    assert_eq!(Options::default().check(), Ok(()));
    assert_eq!(with(|o| o.urls.clear()), Err(OptionsError::Urls));
    assert_eq!(with(|o| o.prefix = "a.b".to_owned()), Err(OptionsError::Prefix));
    assert_eq!(with(|o| o.prefix = String::new()), Err(OptionsError::Prefix));
    assert_eq!(with(|o| o.streams = 0), Err(OptionsError::Streams(0)));
    assert_eq!(with(|o| o.streams = 12), Err(OptionsError::Streams(12)));
    assert_eq!(with(|o| o.streams = 512), Err(OptionsError::Streams(512)));
    assert_eq!(with(|o| o.streams = 256), Ok(()));
    assert_eq!(with(|o| o.replicas = 2), Err(OptionsError::Replicas(2)));
}
