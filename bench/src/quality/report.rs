//! The report: a table for people, JSON for programs.

use serde_json::json;

use super::Row;
use super::measure::Figures;

/// What the fused list must reach: the best single or fused figures that prototypes had.
const GOALS: [(&str, f64); 6] = [
    ("metatool", 0.713),
    ("metatool-fr", 0.937),
    ("metatool-ru", 0.886),
    ("livemcp", 0.387),
    ("abt-buy", 0.959),
    ("cnil-fr", 0.724),
];

/// Forms of a code that must be found first, and how often.
const CODES: [&str; 5] = [
    "codes-exact",
    "codes-upper",
    "codes-nosep",
    "codes-hyphen",
    "codes-space",
];
const CODES_FIRST: f64 = 0.95;

/// How far the fused list may stay below the better of the two it is made of.
const SLACK: f64 = 0.02;

/// Prints one object for each set.
pub(super) fn json(rows: &[Row]) -> anyhow::Result<()> {
    let object = |row: &Row| json!({"set": row.set, "queries": row.queries, "fts": row.fts, "semantic": row.semantic, "fused": row.fused});
    let rows: Vec<serde_json::Value> = rows.iter().map(object).collect();
    println!("{}", serde_json::to_string_pretty(&rows)?);
    Ok(())
}

/// Prints a table, the averages, and whether the goals are met.
pub(super) fn table(rows: &[Row]) {
    println!("nDCG@10 / recall@50 / first\n");
    println!("| set | queries | full text | semantic | fused | to the better |");
    println!("|---|---|---|---|---|---|");
    for row in rows {
        line(&row.set, &row.queries.to_string(), row);
    }
    if let Some(average) = average(rows) {
        line("**average**", "", &average);
    }
    println!();
    goals(rows);
}

fn line(set: &str, queries: &str, row: &Row) {
    let figures = |figures: &Figures| {
        format!(
            "{:.3} / {:.3} / {:.3}",
            figures.ndcg10, figures.recall50, figures.first
        )
    };
    let semantic = row.semantic.as_ref().map_or_else(|| "-".to_owned(), figures);
    println!(
        "| {set} | {queries} | {} | {semantic} | {} | {:+.3} |",
        figures(&row.fts),
        figures(&row.fused),
        gain(row)
    );
}

/// What fusing brings over the better list.
fn gain(row: &Row) -> f64 {
    let semantic = row.semantic.map_or(0.0, |figures| figures.ndcg10);
    row.fused.ndcg10 - row.fts.ndcg10.max(semantic)
}

fn goals(rows: &[Row]) {
    for (set, wanted) in GOALS {
        if let Some(row) = rows.iter().find(|row| row.set == set) {
            goal(
                row.fused.ndcg10 >= wanted,
                &format!("{set}: {:.3}, at least {wanted:.3}", row.fused.ndcg10),
            );
        }
    }
    for set in CODES {
        if let Some(row) = rows.iter().find(|row| row.set == set) {
            let sentence = format!(
                "{set}: the right code first in {:.3}, at least {CODES_FIRST:.2}",
                row.fused.first
            );
            goal(row.fused.first >= CODES_FIRST, &sentence);
        }
    }
    if let Some(Row {
        fts,
        semantic: Some(semantic),
        fused,
        ..
    }) = average(rows)
    {
        let (fts, semantic, fused) = (fts.ndcg10, semantic.ndcg10, fused.ndcg10);
        let sentence =
            format!("on the average fused {fused:.3} is above full text {fts:.3} and semantic {semantic:.3}");
        goal(fused > fts.max(semantic), &sentence);
    }
    if let Some(worst) = rows.iter().min_by(|a, b| gain(a).total_cmp(&gain(b))) {
        goal(
            gain(worst) >= -SLACK,
            &format!(
                "nowhere more than {SLACK} below the better list: {:+.3} ({})",
                gain(worst),
                worst.set
            ),
        );
    }
}

fn goal(is_met: bool, sentence: &str) {
    println!("{} {sentence}", if is_met { "ok    " } else { "MISSED" });
}

/// Every set counts the same.
fn average(rows: &[Row]) -> Option<Row> {
    let mean = |figure: &dyn Fn(&Row) -> Option<Figures>| {
        let figures: Vec<Figures> = rows.iter().filter_map(figure).collect();
        let count = f64::from(u32::try_from(figures.len()).ok().filter(|count| *count > 0)?);
        let of = |part: fn(&Figures) -> f64| figures.iter().map(part).sum::<f64>() / count;
        Some(Figures {
            ndcg10: of(|all| all.ndcg10),
            recall50: of(|all| all.recall50),
            first: of(|all| all.first),
        })
    };
    Some(Row {
        set: "average".to_owned(),
        queries: rows.iter().map(|row| row.queries).sum(),
        fts: mean(&|row| Some(row.fts))?,
        semantic: mean(&|row| row.semantic),
        fused: mean(&|row| Some(row.fused))?,
    })
}
