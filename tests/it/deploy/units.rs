//! The systemd units: accepted by systemd, and all of them as closed as the first.

use std::process::Command;

use super::{files_below, read, run, validator};

/// Settings of the sandbox that every unit which runs the hub has.
const SANDBOX: &[&str] = &[
    "NoNewPrivileges=true",
    "ProtectSystem=strict",
    "ProtectHome=true",
    "PrivateTmp=true",
    "PrivateDevices=true",
    "RestrictNamespaces=true",
    "MemoryDenyWriteExecute=true",
    "SystemCallFilter=@system-service",
    "CapabilityBoundingSet=",
    "UMask=0077",
    "LimitCORE=0",
];

#[test]
fn every_process_runs_in_the_sandbox() {
    for unit in ["aip-hub.service", "aip-hub@.service", "aip-hub-migrate.service"] {
        let text = read(format!("deploy/systemd/{unit}"));
        for line in SANDBOX {
            assert!(text.lines().any(|found| found == *line), "{unit}: no {line}");
        }
    }
}

#[test]
fn systemd_takes_the_units() {
    let Some(program) = validator("systemd-analyze") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    for path in files_below("deploy/systemd") {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".example") {
            continue;
        }
        // The program need not be installed here.
        let text = read(&path).replace("/usr/local/bin/aip-hub", "/bin/true");
        let name = name.replace("@.service", "@8081.service");
        std::fs::write(folder.path().join(&name), text).unwrap();
        names.push(name);
    }
    assert_eq!(names.len(), 5, "{names:?}");
    let mut check = Command::new(program);
    check
        .args(["verify", "--man=no"])
        .args(names.iter().map(|name| format!("./{name}")));
    run(check.current_dir(folder.path()));
}
