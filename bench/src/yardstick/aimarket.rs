//! The reference hub of the market's protocol, `aimarket-hub` from the Python package index, unchanged.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::market::Purses;
use crate::process::{Running, free_port, wait_for_port};

/// Its name and version on `PyPI`.
const PACKAGE: &str = "aimarket-hub==3.16.0";

/// Names a Python that has the package, so that it is not installed again.
const PYTHON_SET: &str = "AIP_MARKET_HUB_PYTHON";

const SCRIPT: &str = include_str!("aimarket.py");

/// It keeps its data where it runs, and looks for no others.
const ALONE: [(&str, &str); 4] = [
    ("AIMARKET_SEED_LIST", ""),
    ("AIMARKET_SEEDS_FILE", "none.json"),
    ("AIMARKET_AUTO_CRAWL", "0"),
    ("AIMARKET_DB_PATH", "data/hub.db"),
];

/// Its market takes money of nobody and calls providers on this machine; what it limits, and what it does beside serving, is
/// off. Everything else is as it ships.
const MARKET: [(&str, &str); 9] = [
    ("AIMARKET_SKIP_SEED", "1"),
    ("AIMARKET_UPDATE_CHECK", "0"),
    ("AIMARKET_ORACLE_FAMILY_URL", "off"),
    ("AIMARKET_ALLOW_LOCAL_PUBLISH", "1"),
    ("AIMARKET_INVOKE_RATE_PER_MIN", "0"),
    ("AIMARKET_CREDITS_ENABLED", "1"),
    ("AIFACTORY_CRYPTO_ENABLED", "1"),
    ("AIMARKET_ALLOW_DEMO_CREDIT", "1"),
    ("AIMARKET_DEPOSIT_WATCH", "0"),
];

/// It takes a while to import what it needs.
const READY_WITHIN: Duration = Duration::from_mins(2);

/// The package, in a folder of its own.
#[derive(Debug)]
pub(crate) struct Package {
    python: PathBuf,
    dir: PathBuf,
}

impl Package {
    /// Installs it with pip into `dir`, unless a Python is named that has it.
    pub(crate) fn install(python: &Path, dir: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(dir.join("data"))?;
        let python = match std::env::var_os(PYTHON_SET) {
            Some(python) => PathBuf::from(python),
            None => installed(python, &dir.join("venv"))?,
        };
        std::fs::write(dir.join("aimarket.py"), SCRIPT)?;
        Ok(Self {
            python,
            dir: dir.to_owned(),
        })
    }

    /// Where its script runs, and what a script is given lies.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A run of its script.
    pub(crate) fn script(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.python);
        command
            .current_dir(&self.dir)
            .args(["aimarket.py", verb])
            .envs(ALONE);
        command
    }

    /// Its hub as a process of its own, on a free port, from this run of its script.
    pub(crate) fn serve(&self, mut command: Command) -> anyhow::Result<Theirs> {
        let port = free_port()?;
        let log = std::fs::File::create(self.dir.join("hub.log"))?;
        command.arg(port.to_string()).stdout(Stdio::null()).stderr(log);
        let process = Running::start(&mut command)?;
        let begun = Instant::now();
        while wait_for_port(port).is_err() {
            ensure!(begun.elapsed() < READY_WITHIN, "{}", self.log());
        }
        Ok(Theirs {
            port,
            _process: process,
        })
    }

    /// The same with a market that sells what `provider` does, and who pays for it.
    pub(crate) fn market(&self, provider: &str) -> anyhow::Result<(Theirs, Purses)> {
        let mut command = self.script("market");
        command.arg(provider).envs(MARKET);
        let theirs = self.serve(command)?;
        let purses = std::fs::read(self.dir.join("purses.json"))?;
        Ok((theirs, serde_json::from_slice(&purses)?))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("hub.log")).unwrap_or_default()
    }
}

/// Its hub, running.
#[derive(Debug)]
pub(crate) struct Theirs {
    /// Its port.
    pub(crate) port: u16,
    _process: Running,
}

fn installed(python: &Path, venv: &Path) -> anyhow::Result<PathBuf> {
    done(Command::new(python).args(["-m", "venv"]).arg(venv))?;
    let python = venv.join("bin/python");
    done(Command::new(&python).args(["-m", "pip", "install", "--quiet", PACKAGE]))?;
    Ok(python)
}

/// Runs to its end and says what it printed.
pub(crate) fn done(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}", errors.trim());
    Ok(String::from_utf8(output.stdout)?)
}

/// Says why it is left out.
#[expect(clippy::print_stderr, reason = "what is left out is told beside the report")]
pub(crate) fn skip(reason: &anyhow::Error) {
    eprintln!("aimarket-hub is left out: {reason:#}");
}
