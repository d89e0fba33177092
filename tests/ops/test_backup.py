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

    def run(self, *words, module=None):
        start = ["-m", module] if module else ["manage.py"]
        return subprocess.run(
            [sys.executable, *start, *words],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def works(self, *words, module=None):
        done = self.run(*words, module=module)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fill(self):
        self.works("fill", module="tests.ops.portal")
        self.works("backup", str(self.file))

    def show(self):
        return json.loads(self.works("show", module="tests.ops.portal"))

    def wipe(self):
        shutil.rmtree(self.data)
        self.data.mkdir(mode=0o700)
        url = self.environment["GPUCOMMONS_DATABASE_URL"]
        if url:
            name = urlsplit(url).path.strip("/")
            with psycopg.connect(url.replace(f"/{name}", "/postgres"), autocommit=True) as server:
                server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
                server.execute(f'CREATE DATABASE "{name}"')

    def rewrite(self, change):
        """The backup with other bytes, packed again as it was."""
        folder = self.data.parent / "unpacked"
        with tarfile.open(self.file) as tar:
            names = tar.getnames()
            tar.extractall(folder, filter="data")
        change(folder)
        with tarfile.open(self.file, "w:gz") as tar:
            for name in names:
                tar.add(folder / name, name)


def kept(shown):
    """Rows that must be the same, the audit's as far as it went."""
    return [row for row in shown["rows"] if row["model"] not in DOUBTED]


def audited(shown):
    return [row["pk"] for row in shown["rows"] if row["model"] == "core.auditentry"]


@pytest.mark.timeout(300)
def test_a_restored_portal_is_the_one_that_was_backed_up(portal):
    portal.fill()
    before = portal.show()
    assert stat.S_IMODE(os.stat(portal.file).st_mode) == 0o600

    portal.wipe()
    portal.works("restore", str(portal.file))

    after = portal.show()
    models = {row["model"] for row in before["rows"]}
    assert {"jobs.job", "jobs.transition", "billing.segment", "quotas.hold"} <= models
    assert kept(after) == kept(before)
    assert audited(after)[: len(audited(before))] == audited(before)
    assert after["files"] == before["files"]
    assert (after["token_of"], after["password_of"]) == ("grace", "grace")
    nodes = [row["fields"] for row in after["rows"] if row["model"] == "fleet.node"]
    assert [(node["state"], node["stream_id"]) for node in nodes] == [("unreachable", "")]
    assert "core.outboxmessage" not in {row["model"] for row in after["rows"]}
    portal.works("prove")


@pytest.mark.timeout(300)
def test_what_must_not_be_restored_is_refused_and_changes_nothing(portal):
    portal.fill()
    before = portal.show()

    full = portal.run("restore", str(portal.file))

    assert full.returncode == 1
    assert "not empty" in full.stderr
    manifest = Path("manifest.json")
    portal.rewrite(lambda folder: newer(folder / manifest))
    later = portal.run("restore", "--yes", str(portal.file))
    assert later.returncode == 1
    assert "jobs.9999_tomorrow" in later.stderr
    portal.rewrite(lambda folder: (folder / "database").write_bytes(b"something else"))
    damaged = portal.run("restore", "--yes", str(portal.file))
    assert damaged.returncode == 1
    assert "damaged: database" in damaged.stderr
    assert kept(portal.show()) == kept(before)


def newer(manifest):
    told = json.loads(manifest.read_text())
    told["migrations"].append("jobs.9999_tomorrow")
    manifest.write_text(json.dumps(told))
