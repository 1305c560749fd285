//! `aip listen --exec` when the program is not there: nothing is lost, and somebody is told.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use aip_client::Draft;

use crate::aip::Aip;
use crate::fake::FakeHub;
use crate::support::agent;

fn script(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_program_that_does_not_exist_fails_at_the_start() {
    let hub = FakeHub::start().await;
    let bob = Aip::registered(&hub, "bob").await;
    std::fs::write(bob.path("plain"), "not executable").unwrap();
    for command in ["no-such-program-here", "./no-such-script --x", "./plain | cat"] {
        let said = bob.fails(2, &["listen", "--exec", command]).await;
        let program = command.split(' ').next().unwrap();
        assert!(said.contains(&format!("{program} cannot be run")), "{said}");
    }
    assert_eq!(hub.state().upgrades_asked, 0, "no message was touched");
}

#[tokio::test]
async fn a_program_that_goes_away_ends_the_listener_and_leaves_the_message() {
    let hub = FakeHub::start().await;
    let (alice, bob) = (agent(&hub, "alice").await, Aip::registered(&hub, "bob").await);
    for text in ["one", "two"] {
        let to = format!("bob#{}", hub.domain);
        alice.send(&Draft::text(to, text)).await.unwrap();
    }
    script(&bob.path("handle.sh"), "#!/bin/sh\ncat >> heard\nrm handle.sh\n");
    let said = bob.fails(1, &["listen", "--exec", "./handle.sh"]).await;
    assert!(
        said.contains("./handle.sh cannot be run") && said.contains("message 2 stays"),
        "{said}"
    );
    assert_eq!(hub.state().mailboxes["bob"].pending(), 1);
    script(&bob.path("handle.sh"), "#!/bin/sh\ncat >> heard\n");
    bob.succeeds(&["listen", "--exec", "./handle.sh", "--count", "1"])
        .await;
    assert_eq!(std::fs::read_to_string(bob.path("heard")).unwrap(), "onetwo");
}

#[tokio::test]
async fn a_script_that_lacks_something_of_its_own_is_tried_again() {
    let hub = FakeHub::start().await;
    let (alice, bob) = (agent(&hub, "alice").await, Aip::registered(&hub, "bob").await);
    let to = format!("bob#{}", hub.domain);
    alice.send(&Draft::text(to, "one")).await.unwrap();
    let command = r#"test "$AIP_ATTEMPT" != 1 || no-such-program-here; cat > heard"#;
    let command = format!("set -e; {command}");
    let output = bob.run(&["listen", "--count", "1", "--exec", &command]).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("a program in it was not found"), "{said}");
    assert_eq!(std::fs::read_to_string(bob.path("heard")).unwrap(), "one");
}
