//! What a goal wants, what was measured, and how both are printed.

/// The bound of a goal.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    /// The median must not be below.
    AtLeast(f64),
    /// The median must not be above.
    AtMost(f64),
    /// There is no bound: the figure is what was asked for.
    Stated,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, ">= {least:.2}"),
            Self::AtMost(most) => write!(f, "<= {most:.2}"),
            Self::Stated => f.write_str("stated"),
        }
    }
}

/// One line of the report.
#[derive(Debug)]
pub(crate) struct Row {
    /// The goal's name, as in docs/PERFORMANCE.md.
    pub(crate) id: &'static str,
    /// What is compared with what.
    pub(crate) what: &'static str,
    /// What is wanted.
    pub(crate) bound: Bound,
    /// One ratio (or absolute figure) per round.
    pub(crate) rounds: Vec<f64>,
    /// The absolute figures behind the last round, for the reader.
    pub(crate) figures: String,
}

impl Row {
    /// The median of the rounds.
    pub(crate) fn median(&self) -> f64 {
        median(&self.rounds)
    }

    /// Whether the median keeps the bound.
    pub(crate) fn met(&self) -> bool {
        match self.bound {
            Bound::AtLeast(least) => self.median() >= least,
            Bound::AtMost(most) => self.median() <= most,
            Bound::Stated => true,
        }
    }

    /// Prints the line.
    pub(crate) fn print(&self) {
        let bound = self.bound.to_string();
        let mut sorted = self.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let spread = sorted
            .iter()
            .map(|x| format!("{x:.2}"))
            .collect::<Vec<_>>()
            .join(" ");
        let verdict = match (self.bound, self.met()) {
            (Bound::Stated, _) => "    ",
            (_, true) => "ok  ",
            (_, false) => "MISS",
        };
        let median = self.median();
        println!(
            "{verdict} {:<9} {:<66} {median:>8.2} {bound:<8} [{spread}]  {}",
            self.id, self.what, self.figures
        );
    }
}

/// The median; NaN of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle.wrapping_sub(1)), sorted.get(middle)) {
        (Some(low), Some(high)) if sorted.len().is_multiple_of(2) => f64::midpoint(*low, *high),
        (_, Some(one)) => *one,
        _ => f64::NAN,
    }
}
