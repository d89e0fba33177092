from pathlib import Path, PurePosixPath

import pytest

from tests.architecture.rules import PACKAGES, RULES, Rule

ROOT = Path(__file__).resolve().parents[2]
BY_NAME = {rule.name: rule for rule in RULES}

PLANTED = [
    ("views ask selectors, never the ORM", "jobs/api/views.py", "Job.objects.get(id=1)"),
    ("tasks are sent by the outbox alone", "jobs/services/submit.py", "start.delay(1)"),
    ("tasks are sent by the outbox alone", "jobs/tasks.py", "start.apply_async((1,))"),
    (
        "only the configuration reads the environment",
        "portal/core/clock.py",
        "import os\nzone = os.environ['TZ']",
    ),
    (
        "only the configuration reads the environment",
        "portal/celery.py",
        "import os\nos.environ.setdefault('TZ', 'UTC')",
    ),
    ("only the configuration reads the environment", "agent/server.py", "from os import getenv"),
    ("a module's name says what lives there", "billing/utils.py", ""),
    ("a module's name says what lives there", "billing/common/rates.py", ""),
    (
        "the product imports no tests and no benchmarks",
        "jobs/models.py",
        "from tests.services import Services",
    ),
    (
        "the product imports no tests and no benchmarks",
        "jobs/models.py",
        "import benchmarks.dispatch",
    ),
    ("models are imported, not looked up", "quotas/selectors.py", "apps.get_model('jobs', 'Job')"),
    ("pure code is given time, ids and chance", "jobs/scheduling/cycle.py", "datetime.now(UTC)"),
    ("pure code is given time, ids and chance", "jobs/domain/states.py", "from uuid import uuid4"),
    ("pure code is given time, ids and chance", "billing/domain/rates.py", "random.random()"),
]

ALLOWED = [
    ("views ask selectors, never the ORM", "jobs/selectors/jobs.py", "Job.objects.get(id=1)"),
    ("tasks are sent by the outbox alone", "portal/core/outbox.py", "start.delay(1)"),
    (
        "only the configuration reads the environment",
        "portal/celery.py",
        "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'portal.settings')",
    ),
    ("models are imported, not looked up", "jobs/migrations/0002_x.py", "apps.get_model('a', 'B')"),
    ("models are imported, not looked up", "portal/core/keep.py", "state.apps.get_model('a', 'B')"),
    (
        "pure code is given time, ids and chance",
        "jobs/scheduling/cycle.py",
        "import random\ndef plan(chance: random.Random): ...",
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_product_keeps_the_rule(rule: Rule) -> None:
    breaches = [
        breach
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        for breach in rule.broken_by(PurePosixPath(file.relative_to(ROOT)), file.read_text())
    ]

    assert breaches == []


@pytest.mark.parametrize(("name", "path", "source"), PLANTED)
def test_a_planted_breach_is_found(name: str, path: str, source: str) -> None:
    assert len(BY_NAME[name].broken_by(PurePosixPath(path), source)) == 1


@pytest.mark.parametrize(("name", "path", "source"), ALLOWED)
def test_the_permitted_form_passes(name: str, path: str, source: str) -> None:
    assert BY_NAME[name].broken_by(PurePosixPath(path), source) == []
