//! Every command of ours that the documents tell an operator to type is one that the program knows.

use std::process::Command;

use aip_tests::binary;

use super::{finish, read};

const DOCUMENTS: &[&str] = &["docs/RUNBOOK.md", "deploy/README.md", "README.md"];

/// The words of every line of code, fenced or inline.
fn code_lines(text: &str) -> Vec<Vec<String>> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    let mut lines = Vec::new();
    for (at, part) in text.split("```").enumerate() {
        if at % 2 == 1 {
            let joined = part.replace("\\\n", " ");
            lines.extend(joined.lines().map(words));
        } else {
            lines.extend(part.split('`').skip(1).step_by(2).map(words));
        }
    }
    lines
}

/// The sub-commands and options of `aip-hub` in a line; `None` where it does not run the program.
fn invocation(words: &[String]) -> Option<(Vec<String>, Vec<String>)> {
    let program = |word: &String| {
        word == "aip-hub" || word.ends_with("/bin/aip-hub") || word.ends_with("release/aip-hub")
    };
    // It is also the name of a user.
    let user = |at: usize| at > 0 && matches!(words[at - 1].as_str(), "-u" | "-o" | "-g");
    let at = (0..words.len()).find(|at| program(&words[*at]) && !user(*at))?;
    let rest = words[at + 1..]
        .iter()
        .take_while(|word| !matches!(word.as_str(), "#" | "|" | ";" | "&&" | "||"));
    let rest: Vec<&String> = rest.collect();
    let plain =
        |word: &&&String| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') && !word.starts_with('-');
    let commands: Vec<String> = rest
        .iter()
        .take_while(plain)
        .map(|word| (*word).clone())
        .collect();
    let option = |word: &&String| {
        let name = word.trim_end_matches(['.', ',', ';', ')']).split('=').next()?;
        name.starts_with("--").then(|| name.to_owned())
    };
    let options = rest
        .iter()
        .filter_map(option)
        .filter(|name| name.len() > 2)
        .collect();
    (!commands.is_empty()).then_some((commands, options))
}

/// The help of the command that the words name; further words are its arguments, if it has no commands of its own.
fn help(commands: &[String]) -> Option<String> {
    (1..=commands.len()).rev().find_map(|length| {
        let output = finish(
            Command::new(binary("aip-hub"))
                .args(&commands[..length])
                .arg("--help"),
        );
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        let group = help.contains("\nCommands:\n") && length < commands.len();
        (output.status.success() && !group).then_some(help)
    })
}

#[test]
fn every_command_of_the_documents_exists() {
    let mut seen = 0;
    for document in DOCUMENTS {
        let text = read(document);
        for (commands, options) in code_lines(&text).iter().filter_map(|words| invocation(words)) {
            let Some(help) = help(&commands) else {
                panic!("{document}: there is no `aip-hub {}`", commands.join(" "))
            };
            for option in options {
                assert!(
                    help.contains(&option),
                    "{document}: `aip-hub {}` has no {option}",
                    commands.join(" ")
                );
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} commands");
}
