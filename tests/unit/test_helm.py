"""The Helm chart, by Helm's own linter and templates, against docker-compose.yml and the settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from deploy.helm.environment import files
from orchestrator.jobs.metrics import QUEUES
from orchestrator.settings import Settings
from posology.version import __version__
from tests.support.helm import CHART, Refused, render

ROOT = Path(__file__).resolve().parents[2]
LEAST: dict[str, Any] = {"index": {"url": "s3://literature/index"}}
SECRET = {"name": "keys", "key": "one"}
#: everything that the chart has
MOST: dict[str, Any] = {
    "index": {"claim": "index"},
    "uploads": {"claim": "uploads"},
    "data": {"configMap": {"name": "prices"}},
    "keda": {"enabled": True},
    "redis": {"enabled": False, "host": "redis.example.org", "tls": True, "port": 6380, "database": 2},
    "settings": {"POSOLOGY_MODEL": "openai:gpt-6-luna", "POSOLOGY_LEASE": 20, "POSOLOGY_LOG_QUESTIONS": False},
    "secrets": {"OPENAI_API_KEY": SECRET, "POSOLOGY_METRICS_KEY": SECRET},
    "image": {"digest": f"sha256:{'0' * 64}"},
    "networkPolicy": {"apiFrom": [{"podSelector": {}}]},
}  # fmt: skip


def loaded(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = loaded("docker-compose.yml")["services"]
    return found


@pytest.fixture(scope="module")
def least() -> list[dict[str, Any]]:
    return render(LEAST)


@pytest.fixture(scope="module")
def most() -> list[dict[str, Any]]:
    return render(MOST)


def named(objects: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    """Objects of a kind by their names, without the release's."""
    return {
        one["metadata"]["name"].removeprefix("demo-posology").lstrip("-"): one
        for one in objects
        if one["kind"] == kind
    }


def container(workload: dict[str, Any]) -> dict[str, Any]:
    (found,) = workload["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def environment(workload: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in container(workload)["env"]}


def test_the_variables_are_those_of_compose() -> None:
    for path, text in files().items():
        assert path.read_text(encoding="utf-8") == text, "run python deploy/helm/environment.py"


def test_keys_are_no_settings() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]
    plain, secret = (set(schema[name]["propertyNames"]["enum"]) for name in ("settings", "secrets"))
    assert not plain & secret
    assert secret >= {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "POSOLOGY_METRICS_KEY"}  # fmt: skip
    assert not [name for name in plain if name.endswith("_KEY")]


@pytest.mark.parametrize(
    "values",
    [
        {"settings": {"OPENAI_API_KEY": "sk-1"}},
        {"settings": {"POSOLOGY_MODELL": "x"}},
        {"secrets": {"OPENAI_API_KEY": "sk-1"}},
        {"index": {"url": "/index"}},
        {"image": {"digest": "latest"}},
        {"workers": {"jobs": {"replicas": 0}}},
        {"apii": {}},
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any]) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = loaded("deploy/helm/posology/values.yaml")
    jsonschema.validate(defaults, schema)
    merged = {
        name: {**defaults.get(name, {}), **value} if isinstance(defaults.get(name), dict) else value
        for name, value in values.items()
    }
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**defaults, **merged}, schema)
    with pytest.raises(Refused):
        render({**LEAST, **values})


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "set one of index.url"),
        ({"index": {"url": "s3://b/i", "claim": "c"}}, "set one of index.url"),
        ({**LEAST, "redis": {"enabled": False}}, "redis.host is needed"),
        ({**LEAST, "redis": {"tls": True}}, "redis.tls is for"),
    ],
)
def test_values_that_do_not_go_together_are_refused(values: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        render(values)


def test_commands_are_those_of_compose(most: list[dict[str, Any]], compose: dict[str, Any]) -> None:
    found = named(most, "Deployment")
    assert set(found) == {"api", "worker-jobs", "worker-calls", "worker-ingest", "ingest-uploads"}
    for name, workload in found.items():
        assert container(workload)["command"] == compose[name]["command"], name
    redis = container(named(render(LEAST), "StatefulSet")["redis"])["command"][-1]
    for option in ("--appendonly yes", "--appendfsync", "--maxmemory 1330mb", "noeviction"):
        assert option in redis
        assert option in compose["redis"]["command"][-1]


def test_every_pod_runs_with_few_rights(
    least: list[dict[str, Any]], most: list[dict[str, Any]]
) -> None:
    workloads = [one for one in (*least, *most) if one["kind"] in ("Deployment", "StatefulSet")]
    assert len(workloads) == 4 + 5
    for one in workloads:
        pod, inner = one["spec"]["template"]["spec"], container(one)
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert inner["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert inner["resources"]["limits"]["memory"]
        assert {mount["name"] for mount in inner["volumeMounts"]} <= {
            *(volume["name"] for volume in pod["volumes"]), "redis"
        }  # fmt: skip
    text = (ROOT / "Dockerfile").read_text()
    assert "--uid 999 " in text
    assert named(most, "Deployment")["api"]["spec"]["template"]["spec"]["securityContext"]["runAsUser"] == 999  # fmt: skip


def test_keys_come_from_secrets(least: list[dict[str, Any]], most: list[dict[str, Any]]) -> None:
    assert not named(most, "Secret")
    own = environment(named(most, "Deployment")["worker-calls"])
    assert own["OPENAI_API_KEY"]["valueFrom"] == {"secretKeyRef": SECRET}
    assert own["POSOLOGY_LEASE"]["value"] == "20"
    # those that a service does not read do not reach it
    assert "POSOLOGY_METRICS_KEY" not in own
    api = environment(named(most, "Deployment")["api"])
    assert "OPENAI_API_KEY" not in api
    assert api["POSOLOGY_METRICS_KEY"]["valueFrom"] == {"secretKeyRef": SECRET}
    assert api["POSOLOGY_LOG_QUESTIONS"]["value"] == "false"
    assert api["POSOLOGY_UPLOADS"]["value"] == "/uploads"
    assert api["POSOLOGY_REDIS_URL"]["value"] == "rediss://:$(REDIS_PASSWORD)@redis.example.org:6380/2"  # fmt: skip
    assert "ingest-uploads" not in named(least, "Deployment")
    few = environment(named(least, "Deployment")["worker-jobs"])
    assert few["POSOLOGY_REDIS_URL"]["value"] == "redis://:$(REDIS_PASSWORD)@demo-posology-redis:6379/0"  # fmt: skip
    assert few["POSOLOGY_INDEX"]["value"] == "s3://literature/index"
    # Kubernetes replaces only what was defined before
    assert list(few)[:2] == ["REDIS_PASSWORD", "POSOLOGY_REDIS_URL"]


def test_only_those_that_write_the_index_may(most: list[dict[str, Any]]) -> None:
    found = {
        name: {m["name"]: m.get("readOnly", False) for m in container(one)["volumeMounts"]}.get("index")
        for name, one in named(most, "Deployment").items()
    }  # fmt: skip
    assert found == {"api": True, "worker-jobs": True, "worker-calls": None, "worker-ingest": False, "ingest-uploads": False}  # fmt: skip
    assert named(most, "Deployment")["ingest-uploads"]["spec"]["strategy"] == {"type": "Recreate"}


def test_uploads_in_a_bucket_need_no_volume() -> None:
    objects = named(render({**LEAST, "uploads": {"url": "s3://literature/uploads"}}), "Deployment")
    for name in ("api", "ingest-uploads"):
        assert environment(objects[name])["POSOLOGY_UPLOADS"]["value"] == "s3://literature/uploads"
        volumes = {one["name"]: one for one in objects[name]["spec"]["template"]["spec"]["volumes"]}
        assert not [one for one in volumes.values() if "persistentVolumeClaim" in one]
        assert volumes["tmp"]["emptyDir"] == {"sizeLimit": "8Gi"}


def test_queues_scale_their_workers(
    least: list[dict[str, Any]], most: list[dict[str, Any]]
) -> None:
    assert not named(least, "ScaledObject")
    assert named(least, "Deployment")["worker-jobs"]["spec"]["replicas"] == 2
    scaled = named(most, "ScaledObject")
    lists = {name: one["spec"]["triggers"][0]["metadata"] for name, one in scaled.items()}
    assert {one["listName"] for one in lists.values()} == {*QUEUES, "posology.ingest"}
    for name, metadata in lists.items():
        workload = named(most, "Deployment")[name]
        assert "replicas" not in workload["spec"]
        command = container(workload)["command"]
        assert command[command.index("-Q") + 1] == metadata["listName"]
        assert scaled[name]["spec"]["scaleTargetRef"]["name"] == workload["metadata"]["name"]
        assert (metadata["address"], metadata["enableTLS"]) == ("redis.example.org:6380", "true")
        assert metadata["databaseIndex"] == "2"
    inner = named(render({**LEAST, "keda": {"enabled": True}}), "ScaledObject")
    assert inner["worker-jobs"]["spec"]["triggers"][0]["metadata"]["address"] == "demo-posology-redis.clinic.svc:6379"  # fmt: skip


def test_probes_outlast_the_start_and_an_outage(most: list[dict[str, Any]]) -> None:
    for name, one in named(most, "Deployment").items():
        inner = container(one)
        if name == "ingest-uploads":
            continue
        start, alive = inner["startupProbe"], inner["livenessProbe"]
        assert start["periodSeconds"] * start["failureThreshold"] >= 300
        if name == "api":
            assert alive["httpGet"] == {"path": "/healthz", "port": "http"}
        else:
            assert alive["exec"]["command"] == ["python", "-m", "workers.health"]
            assert alive["periodSeconds"] * alive["failureThreshold"] >= 600
            grace = one["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
            assert grace > Settings.model_fields["shutdown_grace"].default


def test_policies_select_pods_that_exist(
    least: list[dict[str, Any]], most: list[dict[str, Any]]
) -> None:
    for objects in (least, most):
        pods = [
            one["spec"]["template"]["metadata"]["labels"]
            for one in objects
            if one["kind"] in ("Deployment", "StatefulSet")
        ]
        policies = named(objects, "NetworkPolicy")
        assert ("redis" in policies) == bool(named(objects, "StatefulSet"))
        for one in [*policies.values(), *named(objects, "PodDisruptionBudget").values()]:
            spec = one["spec"]
            labels = spec.get("podSelector", spec.get("selector"))["matchLabels"]
            assert any(labels.items() <= pod.items() for pod in pods), one["metadata"]["name"]
    assert named(most, "NetworkPolicy")["api"]["spec"]["ingress"][0]["from"] == [
        {"podSelector": {}}
    ]
    budgets = set(named(least, "PodDisruptionBudget"))
    assert budgets == {"api", "worker-jobs", "worker-calls"}


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = loaded("deploy/helm/posology/Chart.yaml")
    assert chart["appVersion"] == chart["version"] == __version__
