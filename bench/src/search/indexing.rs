//! What taking up listings costs, models and all, against a bare index and the models alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aip_catalog::catalog::passage;
use aip_catalog::{Embedder, Purpose};
use anyhow::Context as _;

use super::Options;
use super::bare::Index;
use super::ground::Ground;
use super::made::Made;
use super::meaning::models;
use crate::report::{Bound, Row};

/// Listings of one round: models take most of a minute for them.
pub(super) const LISTINGS: u64 = 400;

/// Measures the goal.
pub(super) async fn measure(options: &Options, made: &Arc<Made>) -> anyhow::Result<Vec<Row>> {
    let models = models().map(|model| Arc::new(model) as Arc<dyn Embedder>);
    let texts: Vec<String> = (1..=LISTINGS)
        .map(|number| made.entry(number).map(|entry| passage(&entry)))
        .collect::<Option<_>>()
        .context("a listing of every number")?;
    // The models are read from their files before anything counts.
    for model in &models {
        model
            .embed(Purpose::Passage, texts.get(..1).unwrap_or_default())
            .await?;
    }
    let (mut ratios, mut figures) = (Vec::new(), String::new());
    for _ in 0..options.rounds {
        let scratch = tempfile::tempdir()?;
        let index = Index::open(&scratch.path().join("bare"), made, LISTINGS)?;
        let index = index.built.unwrap_or_default();
        let mut embedded = Vec::new();
        for model in &models {
            embedded.push(alone(model.as_ref(), &texts).await?);
        }
        let dir = scratch.path().join("catalog");
        let ground = Ground::open_with(&dir, made, models.to_vec(), LISTINGS).await?;
        let ours = ground.filled().as_secs_f64();
        ground.close().await;
        let parts = index + embedded.iter().sum::<Duration>();
        ratios.push(parts.as_secs_f64() / ours);
        let per_sec = |secs: f64| f64::from(u32::try_from(LISTINGS).unwrap_or(u32::MAX)) / secs;
        let of_models: Vec<String> = embedded
            .iter()
            .map(|took| format!("{:.0}", per_sec(took.as_secs_f64())))
            .collect();
        figures = format!(
            "{:.1}/s, {:.1}/s (models alone {}/s)",
            per_sec(ours),
            per_sec(parts.as_secs_f64()),
            of_models.join(" and ")
        );
    }
    Ok(vec![Row {
        id: "indexing",
        what: "listings indexed and embedded / (bare tantivy + both models)",
        bound: Bound::AtLeast(0.5),
        rounds: ratios,
        figures,
    }])
}

async fn alone(model: &dyn Embedder, texts: &[String]) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    for texts in texts.chunks(model.batch_max()) {
        model.embed(Purpose::Passage, texts).await?;
    }
    Ok(begun.elapsed())
}
