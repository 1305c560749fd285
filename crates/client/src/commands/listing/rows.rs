//! What became of the rows of an import: a line for each that needs a look, and the sum.

use std::io;

use aip_client::Published;
use aip_client::import::{Remark, Row};
use serde_json::{Value, json};

use super::Outcome;
use super::show::price;
use crate::commands::table::fitted;
use crate::failure::Failure;
use crate::output::{Output, note};

/// Notes that are shown to people; programs get all of them.
const NOTES_SHOWN: usize = 10;

/// What became of one row.
#[derive(Debug)]
pub(super) enum Fate {
    /// It could be published, and was not to be.
    Good,
    /// The hub holds it, signed.
    Held(Published),
    /// The hub holds it, handed in.
    Taken {
        id: String,
        version: Option<u64>,
        status: String,
    },
    /// The hub did not take it.
    Refused { code: Option<String>, why: String },
    /// Something is wrong with it.
    Unread,
}

/// Prints as it goes, and counts.
#[derive(Debug)]
pub(super) struct Report {
    output: Output,
    is_dry: bool,
    rows: usize,
    stored: usize,
    unchanged: usize,
    refused: usize,
    unread: usize,
    notes: usize,
}

impl Report {
    pub(super) fn new(output: Output, is_dry: bool) -> Self {
        Self {
            output,
            is_dry,
            rows: 0,
            stored: 0,
            unchanged: 0,
            refused: 0,
            unread: 0,
            notes: 0,
        }
    }

    pub(super) fn row(&mut self, row: &Row, fate: &Fate) -> io::Result<()> {
        self.rows += 1;
        let status = match fate {
            Fate::Good => "good",
            Fate::Held(Published { status, .. }) | Fate::Taken { status, .. } => status.as_str(),
            Fate::Refused { .. } => "refused",
            Fate::Unread => "unread",
        };
        match status {
            "unchanged" => self.unchanged += 1,
            "refused" => self.refused += 1,
            "unread" => self.unread += 1,
            _ => self.stored += 1,
        }
        if self.output.is_json() {
            return self.output.show(&json_of(row, fate, status), "");
        }
        self.lines(row, fate)
    }

    fn lines(&mut self, row: &Row, fate: &Fate) -> io::Result<()> {
        let name = name_of(row);
        for flaw in &row.flaws {
            self.output.show(&Value::Null, &format!("{name}: {flaw}"))?;
        }
        if let Fate::Refused { why, .. } = fate {
            self.output.show(&Value::Null, &format!("{name}: {why}"))?;
        }
        if let (true, Some(offer)) = (self.is_dry, &row.offer) {
            let name_shown = fitted(&offer.name, 60);
            self.output.show(
                &Value::Null,
                format!("{name}: {name_shown}  {}", price(offer)).trim_end(),
            )?;
        }
        for remark in &row.notes {
            self.notes += 1;
            if self.notes <= NOTES_SHOWN {
                note(&format!("{name}: {remark}"));
            }
        }
        Ok(())
    }

    /// The sum; a failure where a row was left out.
    pub(super) fn end(self) -> Outcome {
        if self.notes > NOTES_SHOWN && !self.output.is_json() {
            note(&format!(
                "and {} more notes; --json shows all",
                self.notes - NOTES_SHOWN
            ));
        }
        let Self {
            rows,
            stored,
            unchanged,
            refused,
            unread,
            ..
        } = self;
        let value = json!({
            "rows": rows, "stored": stored, "unchanged": unchanged, "refused": refused, "unread": unread,
            "dry_run": self.is_dry,
        });
        let lines = if self.is_dry {
            format!("{stored} of {rows} rows are good; nothing was published")
        } else {
            format!(
                "{stored} published, {unchanged} unchanged, {refused} refused by the hub, {unread} could not be read"
            )
        };
        self.output.show(&value, &lines)?;
        match refused + unread {
            0 => Ok(()),
            left_out => Err(Failure::Other(format!("{left_out} of {rows} rows were left out"))),
        }
    }
}

/// `row 7, line 9 (sku-1)`.
fn name_of(row: &Row) -> String {
    let line = row.line.map(|line| format!(", line {line}")).unwrap_or_default();
    let id = row
        .listing_id
        .as_deref()
        .map(|id| format!(" ({})", fitted(id, 40)));
    format!("row {}{line}{}", row.number, id.unwrap_or_default())
}

fn json_of(row: &Row, fate: &Fate, status: &str) -> Value {
    let remarks = |remarks: &[Remark]| -> Vec<Value> {
        let one =
            |remark: &Remark| json!({"member": remark.member, "what": remark.what, "todo": remark.todo});
        remarks.iter().map(one).collect()
    };
    let (id, version) = match fate {
        Fate::Held(published) => (Some(published.id.as_str()), Some(published.version)),
        Fate::Taken { id, version, .. } => (Some(id.as_str()), *version),
        _ => (None, None),
    };
    let (code, why) = match fate {
        Fate::Refused { code, why } => (code.as_deref(), Some(why.as_str())),
        _ => (None, None),
    };
    json!({
        "row": row.number, "line": row.line, "listing_id": row.listing_id, "status": status,
        "id": id, "version": version, "code": code, "detail": why,
        "flaws": remarks(&row.flaws), "notes": remarks(&row.notes),
    })
}
