//! The Helm chart: values, schema and templates agree, and Helm renders what Kubernetes is to run.

use std::collections::BTreeSet;
use std::process::Command;

use aip_tests::binary;
use serde_json::Value;

use super::{files_below, finish, items, members, read, run, strings, validator, yaml, yaml_documents};
use crate::tidy::root;

const CHART: &str = "deploy/helm/aip-hub";
/// The namespace of values that Helm itself uses.
const OF_HELM: &str = "global";

/// `a.b.c` of every value that is not a mapping with members, and whether its name is the chart's own: below an open
/// mapping the operator chooses the names.
fn leaves(value: &Value, schema: &Value, path: &str, found: &mut Vec<String>) {
    let closed = schema["properties"].is_object();
    for (name, inner) in members(value) {
        let inner_path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let inner_schema = &schema["properties"][name];
        assert!(
            !closed || inner_schema.is_object(),
            "values.schema.json does not know {inner_path}"
        );
        if inner_schema["properties"].is_object() {
            leaves(inner, inner_schema, &inner_path, found);
        } else {
            found.push(inner_path);
        }
    }
    for (name, _) in members(&schema["properties"]) {
        let own = path.is_empty() && name == OF_HELM;
        assert!(
            own || value.get(name).is_some(),
            "values.yaml does not have {path}.{name}"
        );
    }
}

/// Every `.Values.a.b` of the templates, as `a.b`.
fn referenced() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in files_below(&format!("{CHART}/templates")) {
        let text = read(&path);
        for rest in text.split(".Values.").skip(1) {
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '.')
                .unwrap_or(rest.len());
            found.insert(rest[..end].trim_end_matches('.').to_owned());
        }
    }
    found
}

#[test]
fn values_schema_and_templates_agree() {
    let values = yaml(&format!("{CHART}/values.yaml"));
    let schema: Value = serde_json::from_str(&read(format!("{CHART}/values.schema.json"))).unwrap();
    let mut known = Vec::new();
    leaves(&values, &schema, "", &mut known);
    let referenced = referenced();
    for name in &referenced {
        assert!(
            known.contains(name),
            "a template asks for .Values.{name}, which values.yaml does not have"
        );
    }
    for name in &known {
        assert!(
            referenced.contains(name),
            "no template uses {name} of values.yaml"
        );
    }
}

#[test]
fn the_chart_is_of_this_release() {
    let cargo: toml::Table = read("Cargo.toml").parse().unwrap();
    let release = cargo["workspace"]["package"]["version"].as_str().unwrap();
    let chart = yaml(&format!("{CHART}/Chart.yaml"));
    assert_eq!(chart["appVersion"], release);
    let compose = yaml("docker-compose.yml");
    let image = compose["services"]["hub-1"]["image"].as_str().unwrap();
    assert_eq!(image, format!("${{AIP_HUB_IMAGE:-aip-hub:{release}}}"));
}

/// What the chart makes of these values.
fn rendered(helm: &std::path::Path, values: &str) -> Vec<Value> {
    let mut command = Command::new(helm);
    command
        .args(["template", "hub", CHART, "--namespace", "agents", "-f"])
        .arg(format!("{CHART}/ci/{values}.yaml"));
    yaml_documents(&run(command.current_dir(root())))
}

/// The one object of a kind, and with this end of its name.
fn object<'a>(objects: &'a [Value], kind: &str, end: &str) -> &'a Value {
    let is = |object: &&Value| {
        object["kind"] == kind
            && object["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.ends_with(end))
    };
    objects
        .iter()
        .find(is)
        .unwrap_or_else(|| panic!("no {kind} …{end}"))
}

fn pod_specs(objects: &[Value]) -> Vec<&Value> {
    objects
        .iter()
        .filter_map(|object| match object["kind"].as_str() {
            Some("Pod") => Some(&object["spec"]),
            Some("Deployment" | "Job") => Some(&object["spec"]["template"]["spec"]),
            _ => None,
        })
        .collect()
}

#[test]
fn helm_takes_the_chart() {
    let Some(helm) = validator("helm") else { return };
    for values in ["full-values", "least-values"] {
        let mut lint = Command::new(&helm);
        lint.args(["lint", "--strict", CHART, "-f"])
            .arg(format!("{CHART}/ci/{values}.yaml"));
        run(lint.current_dir(root()));
        for spec in pod_specs(&rendered(&helm, values)) {
            assert_eq!(spec["automountServiceAccountToken"], false);
            assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
            for container in items(&spec["containers"]).chain(items(&spec["initContainers"])) {
                let security = &container["securityContext"];
                assert_eq!(security["readOnlyRootFilesystem"], true, "{container}");
                assert_eq!(security["allowPrivilegeEscalation"], false);
                assert_eq!(strings(&security["capabilities"]["drop"]), ["ALL"]);
                assert!(
                    container["resources"]["limits"]["memory"].is_string(),
                    "{container}"
                );
            }
        }
    }
}

#[test]
fn nothing_is_made_without_a_domain_and_secrets() {
    let Some(helm) = validator("helm") else { return };
    for (set, missing) in [
        ("hub.domain=example.org", "secrets.existingSecret"),
        ("secrets.existingSecret=s", "hub.domain"),
    ] {
        let output = finish(
            Command::new(&helm)
                .args(["template", "hub", CHART, "--set", set])
                .current_dir(root()),
        );
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains(missing),
            "{set}: {said}"
        );
    }
    let wrong = [
        "template",
        "hub",
        CHART,
        "-f",
        "deploy/helm/aip-hub/ci/least-values.yaml",
        "--set",
        "nats.replicas=2",
    ];
    assert!(
        !finish(Command::new(&helm).args(wrong).current_dir(root()))
            .status
            .success(),
        "two replicas"
    );
}

#[test]
fn the_rendered_objects_are_a_rolling_hub() {
    let Some(helm) = validator("helm") else { return };
    let objects = rendered(&helm, "full-values");
    let deployment = object(&objects, "Deployment", "aip-hub");
    let pod = &deployment["spec"]["template"]["spec"];
    let hub = &pod["containers"][0];
    // A pod waits, then the hub closes, then there is time left.
    let pause = hub["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap();
    assert_eq!(
        pod["terminationGracePeriodSeconds"].as_u64().unwrap(),
        pause + 20 + 10
    );
    assert_eq!(
        deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"],
        0
    );
    let job = object(&objects, "Job", "-migrate");
    assert_eq!(
        job["metadata"]["annotations"]["helm.sh/hook"],
        "pre-install,pre-upgrade"
    );
    let migrate = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(strings(&migrate["args"]), ["migrate"]);
    // The hook runs before the settings exist, so it may mount nothing of the release.
    assert!(!job.to_string().contains("configMap"), "{job}");
    for volume in items(&pod["volumes"]) {
        let given = volume
            .get("emptyDir")
            .or(volume.get("secret"))
            .or(volume.get("configMap"));
        assert!(given.is_some(), "{volume}");
    }
    let headless = object(&objects, "Service", "-operator");
    assert_eq!(headless["spec"]["clusterIP"], "None");
    assert_eq!(
        object(&objects, "PodDisruptionBudget", "aip-hub")["spec"]["maxUnavailable"],
        1
    );
    let selector = &deployment["spec"]["selector"]["matchLabels"];
    for kind in ["Service", "NetworkPolicy", "PodDisruptionBudget"] {
        let spec = &object(&objects, kind, "aip-hub")["spec"];
        let chosen = [
            &spec["selector"]["matchLabels"],
            &spec["podSelector"]["matchLabels"],
            &spec["selector"],
        ];
        assert!(chosen.contains(&selector), "{kind} is for other pods");
    }
    let rules = object(&objects, "PrometheusRule", "aip-hub");
    assert_eq!(rules["spec"], yaml("deploy/prometheus/alerts.yml"));
}

#[test]
fn the_hub_takes_the_rendered_settings() {
    let Some(helm) = validator("helm") else { return };
    for values in ["full-values", "least-values"] {
        let objects = rendered(&helm, values);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hub.toml");
        std::fs::write(
            &file,
            object(&objects, "ConfigMap", "aip-hub")["data"]["hub.toml"]
                .as_str()
                .unwrap(),
        )
        .unwrap();
        let mut check = Command::new(binary("aip-hub"));
        check
            .args(["config", "check"])
            .env_clear()
            .env("AIP_HUB_CONFIG", &file);
        let pod = &object(&objects, "Deployment", "aip-hub")["spec"]["template"]["spec"];
        for variable in items(&pod["containers"][0]["env"]) {
            let (name, value) = (variable["name"].as_str().unwrap(), variable["value"].as_str());
            match (name, value) {
                ("AIP_HUB_CONFIG", _) => {}
                (_, Some(value)) => drop(check.env(name, value)),
                (name, None) => drop(check.env(name, from_elsewhere(name))),
            }
        }
        run(&mut check);
    }
}

/// What a Secret, or the name of the pod, holds.
fn from_elsewhere(name: &str) -> &'static str {
    match name {
        "AIP_HUB__ENGINES__REGISTRY_URL" => "postgres://hub:secret@postgres:5432/hub",
        "AIP_HUB__ENGINES__MAILBOXES_URL" => "nats://hub:secret@nats:4222",
        "AIP_HUB__ENGINES__SHARED_URL" => "redis://:secret@redis:6379/0",
        "AIP_HUB__HUB__PROCESS_NAME" => "hub-aip-hub-7d4b9c5f6-x2k8p",
        other => panic!("{other} comes from nowhere"),
    }
}
