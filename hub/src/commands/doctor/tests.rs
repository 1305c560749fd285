//! The report as a whole.

use super::*;

fn settings(folder: &std::path::Path) -> Source {
    let file = folder.join("hub.toml");
    let data = folder.join("data");
    let text = format!(
        "[hub]\ndomain = \"example.org\"\ndata_dir = {data:?}\n[http]\nlisten = \"127.0.0.1:0\"\noperator_listen = \
         \"127.0.0.1:0\"\n[relay]\ndisk_used_percent_max = 0\ndisk_free_bytes_min = 0\n"
    );
    std::fs::write(&file, text).unwrap();
    Source {
        config: Some(file),
        ..Source::default()
    }
}

#[tokio::test]
async fn a_folder_that_is_missing_is_told_with_the_command_that_makes_it() {
    let outside = tempfile::tempdir().unwrap();
    let found = examine(&settings(outside.path()), false).await.unwrap();
    let Some(Finding::Bad(text)) = found.last() else {
        panic!("{found:?}")
    };
    assert!(text.contains("aip-hub init"), "{text}");
}

#[tokio::test]
async fn a_fresh_folder_has_nothing_bad() {
    let outside = tempfile::tempdir().unwrap();
    DataDir::create(outside.path().join("data")).unwrap();
    let found = examine(&settings(outside.path()), false).await.unwrap();
    assert!(
        !found.iter().any(|finding| matches!(finding, Finding::Bad(_))),
        "{found:?}"
    );
}

#[tokio::test]
async fn a_key_that_others_can_read_is_bad() {
    use std::os::unix::fs::PermissionsExt as _;
    let outside = tempfile::tempdir().unwrap();
    let folder = DataDir::create(outside.path().join("data")).unwrap();
    for file in [folder.key(), crate::hub_key::previous_file(&folder.key())] {
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let found = examine(&settings(outside.path()), false).await.unwrap();
        let words = format!("chmod 600 {}`", file.display());
        let named = |finding: &Finding| matches!(finding, Finding::Bad(text) if text.contains(&words));
        assert!(found.iter().any(named), "{found:?}");
        std::fs::remove_file(&file).unwrap();
    }
}

#[tokio::test]
async fn every_bad_setting_is_a_line() {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("hub.toml");
    std::fs::write(&file, "[hub]\ndomian = \"example.org\"\n[http]\nport = 1\n").unwrap();
    let found = examine(
        &Source {
            config: Some(file),
            ..Source::default()
        },
        false,
    )
    .await
    .unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found
            .iter()
            .all(|finding| finding.line().starts_with("FAIL  there is no setting"))
    );
}
