"""How long pages take on the embedded portal with 100,000 jobs and 200 GPUs in its database."""

from __future__ import annotations

import argparse
import http.client
import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from benchmarks.api import Failed
from benchmarks.embedded import Embedded
from benchmarks.report import MEASUREMENTS, circumstances, percentile, print_figures, say, write

PAGES = {
    "home": "/",
    "job_list": "/jobs",
    "all_jobs": "/jobs?state=all",
    "gpu_map": "/gpus",
    "usage": "/usage",
}
GOAL_MS = 300
_MODEL = "Benchmark GPU"
_GPU_MIB = 143_000
_BATCH = 2_000
_SLICES = 2
_WAITING = 600


class Visitor:
    """Someone who has signed in, with one keep-alive connection."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._connection = http.client.HTTPConnection(
            place.hostname or "", place.port or 80, timeout=60
        )
        self._cookies: dict[str, str] = {}

    def sign_in(self, name: str, password: str) -> None:
        form = self.get("/sign-in").decode()
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
        if token is None:
            raise Failed("there is no form to sign in")
        sent = {"username": name, "password": password, "csrfmiddlewaretoken": token[1]}
        self._ask("POST", "/sign-in", urlencode(sent))
        if "sessionid" not in self._cookies:
            raise Failed(f"{name} could not sign in")

    def get(self, path: str) -> bytes:
        return self._ask("GET", path)

    def _ask(self, method: str, path: str, body: str | None = None) -> bytes:
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        headers = {"Cookie": cookies, "Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        for line in response.headers.get_all("Set-Cookie") or ():
            self._cookies |= {name: one.value for name, one in SimpleCookie(line).items()}
        text = response.read()
        if response.status >= 400:
            raise Failed(f"{method} {path}: {response.status}")
        return text


@dataclass(frozen=True)
class Size:
    jobs: int
    gpus: int


def fill(data: Path, size: Size) -> None:
    """Write jobs, use, GPUs and leases straight into the database of a stopped portal."""
    os.environ.update(GPUCOMMONS_DATA=str(data), DJANGO_SETTINGS_MODULE="portal.settings")
    import django

    django.setup()
    from django.db import connection, transaction

    with transaction.atomic():
        _Filling(size).write()
    connection.close()


class _Filling:
    def __init__(self, size: Size) -> None:
        from billing.models import PriceVersion, Rate
        from portal.accounts.models import Project, User

        self.size = size
        self.chance = random.Random(1)  # noqa: S311 - nothing secret
        self.now = datetime.now(UTC).replace(microsecond=0)
        self.projects = list(Project.objects.select_related("tenant"))
        self.users = list(User.objects.all())
        self.price = PriceVersion.objects.latest("effective_from")
        self.rate = Rate.objects.get(version=self.price, gpu_model="*").micros_per_gpu_hour
        self.numbers = {project.pk: project.last_job_number for project in self.projects}

    def write(self) -> None:
        from jobs.models import Attempt, Job
        from portal.accounts.models import Project
        from portal.fleet.models import Gpu, Lease, Node, NodeState, Slice

        node = Node.objects.create(
            name="benchmark",
            address="https://127.0.0.1:1",
            state=NodeState.READY,
            drained=True,
            created_at=self.now - timedelta(days=90),
            last_seen_at=self.now,
        )
        gpus = [self._gpu(node, index) for index in range(self.size.gpus)]
        Gpu.objects.bulk_create(gpus, batch_size=_BATCH)
        running = [self._job("RUNNING", number) for number in range(self.size.gpus * _SLICES)]
        waiting = [self._job("QUEUED", number) for number in range(_WAITING)]
        Job.objects.bulk_create([*running, *waiting], batch_size=_BATCH)
        slices = [self._slice(gpus[number // _SLICES]) for number in range(len(running))]
        Slice.objects.bulk_create(slices, batch_size=_BATCH)
        pairs = list(zip(running, slices, strict=True))
        leases = [self._lease(job, piece) for job, piece in pairs]
        Lease.objects.bulk_create(leases, batch_size=_BATCH)
        Attempt.objects.bulk_create(
            Attempt(
                id=lease.attempt_id,
                job=job,
                number=1,
                lease_id=lease.pk,
                node_id=node.pk,
                created_at=self.now,
                started_at=self.now,
            )
            for lease, job in zip(leases, running, strict=True)
        )
        ended = self._ended(self.size.jobs - len(running) - len(waiting))
        while batch := list(islice(ended, _BATCH)):
            Job.objects.bulk_create(batch)
            self._meter(batch)
        for project in self.projects:
            Project.objects.filter(pk=project.pk).update(last_job_number=self.numbers[project.pk])

    def _gpu(self, node: Any, index: int) -> Any:
        from portal.fleet.models import Gpu

        return Gpu(
            node=node,
            uuid=f"GPU-benchmark-{index}",
            index=index,
            model=_MODEL,
            memory_mib=_GPU_MIB,
            mode="share",
            simulated=True,
            healthy=True,
            compute_leased_milli=250 * _SLICES,
            memory_leased_mib=8192 * _SLICES,
        )

    def _slice(self, gpu: Any) -> Any:
        from portal.fleet.models import Slice

        return Slice(gpu=gpu, kind="share", memory_mib=8192, compute_milli=250)

    def _lease(self, job: Any, piece: Any) -> Any:
        from portal.core.ids import new_id
        from portal.fleet.models import Lease

        return Lease(
            slice=piece,
            gpu=piece.gpu,
            node=piece.gpu.node,
            attempt_id=new_id(),
            desired="running",
            memory_mib=8192,
            compute_milli=250,
            created_at=job.submitted_at,
            started_at=job.started_at,
        )

    def _ended(self, count: int) -> Iterator[Any]:
        return (self._job("SUCCEEDED", number) for number in range(count))

    def _job(self, state: str, number: int) -> Any:
        from jobs.models import Job

        project = self.chance.choice(self.projects)
        self.numbers[project.pk] += 1
        age = timedelta(seconds=number if state != "SUCCEEDED" else 3600 + number * 45)
        at = self.now - age
        waits = state == "QUEUED"
        return Job(
            project=project,
            number=self.numbers[project.pk],
            submitted_by=self.chance.choice(self.users),
            name=f"benchmark {number}",
            command=["true"],
            memory_mib=8192,
            compute_milli=250,
            gpu_model=_MODEL,
            state=state,
            submitted_at=at,
            queued_at=at,
            started_at=None if waits else at,
            ended_at=at + timedelta(minutes=10) if state == "SUCCEEDED" else None,
            exit_code=0 if state == "SUCCEEDED" else None,
            wait_code="jobs.maintenance" if waits else "",
            wait_reason="Every GPU is on a node in maintenance." if waits else "",
        )

    def _meter(self, jobs: list[Any]) -> None:
        from billing.models import Segment

        Segment.objects.bulk_create(
            Segment(
                lease_id=job.pk,
                job_id=job.pk,
                project_id=job.project_id,
                tenant_id=job.project.tenant_id,
                user_id=job.submitted_by_id,
                gpu_model=_MODEL,
                equivalent_milli=250,
                compute_milli=250,
                memory_mib=8192,
                started_at=job.started_at,
                ended_at=job.ended_at,
                duration_ms=600_000,
                price_version=self.price,
                rate_micros_per_gpu_hour=self.rate,
                created_at=self.now,
            )
            for job in jobs
        )


def measure(portal: Embedded, requests: int) -> dict[str, Any]:
    visitor = Visitor(portal.url)
    visitor.sign_in(*portal.login("admin"))
    figures: dict[str, Any] = {}
    for name, path in PAGES.items():
        for _ in range(3):
            visitor.get(path)
        times = []
        for _ in range(requests):
            begun = time.perf_counter()
            visitor.get(path)
            times.append(1000 * (time.perf_counter() - begun))
        figures[f"{name}_p50_ms"] = round(percentile(times, 50), 1)
        figures[f"{name}_p95_ms"] = round(percentile(times, 95), 1)
        say(f"{path}: p50 {percentile(times, 50):.0f} ms, p95 {percentile(times, 95):.0f} ms")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--gpus", type=int, default=200)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--record", action="store_true", help="write docs/measurements/pages.json")
    options = parser.parse_args()
    around = circumstances("benchmarks.pages")
    place = Path(tempfile.mkdtemp(prefix="gpucommons-pages-"))
    place.chmod(0o711)
    try:
        with Embedded(place / "data"):
            say("the demonstration is made")
        begun = time.monotonic()
        fill(place / "data", Size(options.jobs, options.gpus))
        say(f"{options.jobs} jobs and {options.gpus} GPUs after {time.monotonic() - begun:.0f} s")
        with Embedded(place / "data") as portal:
            figures = measure(portal, options.requests)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    figures["detail"] = {
        "jobs": options.jobs,
        "gpus": options.gpus,
        "requests": options.requests,
        "goal_p95_ms": GOAL_MS,
    }
    if options.record:
        write(MEASUREMENTS / "pages.json", {**around, "figures": figures})
    print_figures(figures)


if __name__ == "__main__":
    main()
