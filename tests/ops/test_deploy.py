"""What lies in deploy/ fits together, and fits the product. tests/topology runs its commands."""

import json
import re
from pathlib import Path

import pytest
import yaml

from portal.core.queues import Queue
from portal.ops import metrics
from portal.ops.management.commands import config_reference
from tests.topology import compose
from tests.topology.topology import PARTS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SERVICES = compose.services()
LASTING = {name: service for name, service in SERVICES.items() if service["restart"] != "no"}
PORTAL = sorted(set(LASTING) - {"postgres", "redis", "agent-1", "agent-2"})
METRIC = re.compile(r"gpucommons_\w+")


def test_the_topology_runs_every_service_of_the_compose_file():
    assert set(PARTS) | {"postgres"} == set(LASTING)


@pytest.mark.parametrize("name", sorted(LASTING))
def test_a_service_is_confined_and_watched(name):
    service = LASTING[name]

    assert service["read_only"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["healthcheck"]["test"]
    assert re.search(r":[^:]*\d[^:]*$", service["image"])
    assert "latest" not in service["image"]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_no_secret_stands_in_an_environment(name):
    environment = SERVICES[name].get("environment", {})

    secret = {
        key
        for key in environment
        if re.search("PASSWORD|SECRET", key) and not key.endswith("_FILE")
    }
    assert secret == set()
    assert not re.search(r"//[^/@]*:[^/@]*@", str(environment))


def test_the_workers_serve_every_queue_once():
    words = [word for service in SERVICES.values() for word in service.get("command", [])]
    served = [
        queue
        for word in words
        if word.startswith("--queues=")
        for queue in word.removeprefix("--queues=").split(",")
    ]

    assert sorted(served) == sorted(Queue)


@pytest.mark.parametrize("name", PORTAL)
def test_a_unit_of_systemd_starts_what_compose_starts(name):
    unit = (DEPLOY / "systemd" / f"gpucommons-{name}.service").read_text()
    started = re.search(r"^ExecStart=/opt/gpucommons/\.venv/bin/(.*)$", unit, re.MULTILINE)
    assert started
    words = started[1].replace("%%", "%").replace("/var/lib/gpucommons/", "/data/").split()

    wanted = [word.replace("=0.0.0.0", "=127.0.0.1") for word in SERVICES[name]["command"]]
    assert words == [word for word in wanted if not word.startswith("--alive-file")]


def test_the_units_know_every_variable_that_the_portal_needs():
    given = set(
        re.findall(r"^(GPUCOMMONS_\w+)=", (DEPLOY / "systemd/portal.env").read_text(), re.M)
    )

    assert given == set(SERVICES["web"]["environment"])


def test_the_images_hold_every_package():
    text = (DEPLOY / "docker" / "Dockerfile").read_text()

    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "benchmarks"}
    assert packages <= set(re.findall(r"^COPY (\w+)", text, re.MULTILINE)) | {"agent"}
    assert "--require-hashes" in text
    assert "USER portal" in text


def test_rules_and_dashboard_name_metrics_that_exist():
    known = set(METRIC.findall(Path(metrics.__file__).read_text()))

    for file in ("prometheus/rules.yaml", "grafana/gpucommons.json"):
        text = (DEPLOY / file).read_text()
        assert set(METRIC.findall(text)) <= known, file
    assert json.loads((DEPLOY / "grafana" / "gpucommons.json").read_text())["panels"]


def test_every_alert_has_its_paragraph_in_the_runbook():
    rules = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text())
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}

    runbook = (ROOT / "docs" / "operations" / "runbook.md").read_text()
    assert alerts <= set(re.findall(r"^## (\w+)", runbook, re.MULTILINE))


def test_the_reference_of_the_configuration_is_that_of_the_code():
    written = (ROOT / "docs" / "operations" / "configuration.md").read_text()

    assert written == config_reference.reference(), "make openapi writes it again"
