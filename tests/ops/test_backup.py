"""A portal that was backed up, wiped and restored is the portal that it was."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

ROOT = Path(__file__).parents[2]
#: What a restore changes on purpose: orders are not sent twice, nodes are asked before trusted.
DOUBTED = {"core.outboxmessage", "fleet.node", "core.auditentry"}


@pytest.fixture
def portal(portal_environment):
    return Portal(portal_environment)


class Portal:
    """A portal of its own, without a running process, driven by operators' commands."""

    def __init__(self, environment):
        self.environment = environment
        self.data = Path(environment["GPUCOMMONS_DATA"])
        self.file = self.data.parent / "backup.tar.gz"

    def act(self, *words):
        done = subprocess.run(
            [sys.executable, "-m", "tests.ops.portal", *words],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def wipe(self):
        shutil.rmtree(self.data)
        self.data.mkdir(mode=0o700)
        url = self.environment["GPUCOMMONS_DATABASE_URL"]
        if url:
            name = urlsplit(url).path.strip("/")
            with psycopg.connect(url.replace(f"/{name}", "/postgres"), autocommit=True) as server:
                server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
                server.execute(f'CREATE DATABASE "{name}"')

    def rewritten(self, name, change):
        """The backup with other bytes, packed again as it was."""
        folder, file = self.data.parent / name, self.data.parent / f"{name}.tar.gz"
        with tarfile.open(self.file) as tar:
            names = tar.getnames()
            tar.extractall(folder, filter="data")
        change(folder)
        with tarfile.open(file, "w:gz") as tar:
            for member in names:
                tar.add(folder / member, member)
        return str(file)


def kept(shown):
    """Rows that must be the same, the audit's as far as it went."""
    return [row for row in shown["rows"] if row["model"] not in DOUBTED]


def audited(shown):
    return [row["pk"] for row in shown["rows"] if row["model"] == "core.auditentry"]


@pytest.mark.timeout(600)
def test_a_restored_portal_is_the_one_that_was_backed_up(portal):
    before = portal.act("fill", str(portal.file))
    assert stat.S_IMODE(os.stat(portal.file).st_mode) == 0o600

    refused = portal.act(
        "refuse",
        str(portal.file),
        portal.rewritten("newer", of_tomorrow),
        portal.rewritten("damaged", lambda folder: (folder / "database").write_bytes(b"else")),
    )

    assert [len(refused), "is not empty" in refused[0], "jobs.9999_tomorrow" in refused[1]] == [
        3,
        True,
        True,
    ]
    assert "is damaged: database" in refused[2]

    portal.wipe()
    portal.act("restore", str(portal.file))
    after = portal.act("show")

    models = {row["model"] for row in before["rows"]}
    assert {"jobs.job", "jobs.transition", "billing.segment", "quotas.hold"} <= models
    assert kept(after) == kept(before)
    assert audited(after)[: len(audited(before))] == audited(before)
    assert after["files"] == before["files"]
    assert (after["token_of"], after["password_of"]) == ("grace", "grace")
    nodes = [row["fields"] for row in after["rows"] if row["model"] == "fleet.node"]
    assert [(node["state"], node["stream_id"]) for node in nodes] == [("unreachable", "")]
    assert "core.outboxmessage" not in {row["model"] for row in after["rows"]}


def of_tomorrow(folder):
    manifest = folder / "manifest.json"
    told = json.loads(manifest.read_text())
    told["migrations"].append("jobs.9999_tomorrow")
    manifest.write_text(json.dumps(told))
