//! P14: how long a search takes, against the bare parts that it is made of.

use std::sync::Arc;

use aip_catalog::catalog::passage;
use anyhow::Context as _;

use super::Options;
use super::bare::Index;
use super::ground::Ground;
use super::meaning::Recombined;
use super::queries::Asked;
use super::times::{self, Times};
use super::vectors::Rows;
use crate::report::{Bound, Row};

/// One comparison, round after round.
#[derive(Default)]
struct Series {
    ratios: Vec<f64>,
    figures: String,
}

impl Series {
    fn add(&mut self, ours: &Times, parts: &[&Times]) {
        let sum: f64 = parts.iter().map(|times| times.p99()).sum();
        self.ratios.push(ours.p99() / sum);
        let parts: Vec<String> = parts.iter().map(|times| format!("{:.2}", times.p99())).collect();
        self.figures = format!(
            "{:.2} ms (p50 {:.2}), {} ms",
            ours.p99(),
            ours.p50(),
            parts.join(" + ")
        );
    }

    fn row(self, what: &'static str, bound: Bound) -> Row {
        Row {
            id: "P14",
            what,
            bound,
            rounds: self.ratios,
            figures: self.figures,
        }
    }
}

/// Measures the goal and what is behind it.
pub(super) async fn measure(
    options: &Options,
    ground: &Ground,
    bare: &Index,
    embedders: &[Arc<Recombined>],
    asked: &[Asked],
) -> anyhow::Result<Vec<Row>> {
    let scans = scans(ground, embedders)?;
    // What was written has been merged, and what is asked first has been read from the disk.
    ground
        .times(asked.iter().map(|asked| asked.three.as_str()))
        .await?;
    bare.times(asked, |asked| &asked.three)?;
    let (mut exact, mut signs, mut one) = (Series::default(), Series::default(), Series::default());
    let (mut text, mut whole) = (Series::default(), Series::default());
    for _ in 0..options.rounds {
        let three = bare.times(asked, |asked| &asked.three)?;
        let all: Vec<Times> = scan_all(&scans, embedders, asked, Rows::exact)?;
        let by_signs: Vec<Times> = scan_all(&scans, embedders, asked, Rows::by_signs)?;
        let ours = ground
            .times(asked.iter().map(|asked| asked.three.as_str()))
            .await?;
        let with = |times: &'_ [Times]| -> Vec<Times> {
            std::iter::once(three.clone())
                .chain(times.iter().cloned())
                .collect()
        };
        exact.add(&ours, &with(&all).iter().collect::<Vec<_>>());
        signs.add(&ours, &with(&by_signs).iter().collect::<Vec<_>>());
        one.add(
            &ours,
            &with(all.get(..1).unwrap_or_default()).iter().collect::<Vec<_>>(),
        );
        let alone = ground
            .times(asked.iter().map(|asked| asked.reversed.as_str()))
            .await?;
        text.add(&alone, &[&three]);
        let long = bare.times(asked, |asked| &asked.whole)?;
        let ours = ground
            .times(asked.iter().map(|asked| asked.whole.as_str()))
            .await?;
        let parts: Vec<&Times> = std::iter::once(&long).chain(&all).collect();
        whole.add(&ours, &parts);
    }
    Ok(vec![
        exact.row(
            "search p99 / (tantivy, 3 words + i8 scan of both models)",
            Bound::AtMost(1.5),
        ),
        one.row(
            "the same / (tantivy + i8 scan of one model of 512)",
            Bound::Stated,
        ),
        signs.row(
            "the same / (tantivy + signs, then i8, of both models)",
            Bound::Stated,
        ),
        text.row("by text alone p99 / tantivy, 3 words", Bound::Stated),
        whole.row(
            "whole queries p99 / (tantivy + i8 scan of both models)",
            Bound::Stated,
        ),
    ])
}

/// The vectors of all listings, bare.
fn scans(ground: &Ground, embedders: &[Arc<Recombined>]) -> anyhow::Result<Vec<Rows>> {
    let mut scans: Vec<Rows> = embedders.iter().map(|embedder| Rows::new(embedder)).collect();
    for number in 1..=ground.store.latest() {
        let text = passage(
            &ground
                .store
                .made()
                .entry(number)
                .context("a listing of every number")?,
        );
        for (rows, embedder) in scans.iter_mut().zip(embedders) {
            rows.push(&embedder.passage(&text));
        }
    }
    Ok(scans)
}

type Scan = fn(&Rows, &[f32]) -> Vec<(f32, usize)>;

fn scan_all(
    scans: &[Rows],
    embedders: &[Arc<Recombined>],
    asked: &[Asked],
    scan: Scan,
) -> anyhow::Result<Vec<Times>> {
    let of_model = |(rows, embedder): (&Rows, &Arc<Recombined>)| {
        times::each(asked, |asked| {
            let query = embedder.query(&asked.three).context("a vector of every query")?;
            std::hint::black_box(scan(rows, query));
            Ok(())
        })
    };
    scans.iter().zip(embedders).map(of_model).collect()
}
