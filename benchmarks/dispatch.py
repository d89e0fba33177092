"""How long a job waits on an idle system, and how many short jobs run to completion per second.

``python -m benchmarks.dispatch [--slurm] [--jobs 100] [--burst 300] [--record]``

Starts an embedded portal of its own. ``--slurm`` measures Slurm on the same machine after it.
`docs/measurements/README.md` says what the figures mean.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import report, slurm
from benchmarks.api import Api, Failed
from benchmarks.embedded import Embedded
from benchmarks.report import percentile, say

PROJECT = "vision"
JOB = {"project": PROJECT, "command": ["/bin/true"], "compute_milli": 250}
CONNECTIONS = 4
WARM_UP = 3
TIMEOUT_S = 300
POLL_S = 0.02


@dataclass(frozen=True)
class Sizes:
    jobs: int
    burst: int


def main() -> int:
    options = _options()
    circumstances = report.circumstances("benchmarks.dispatch")
    say(f"load average before the run: {circumstances['load_average_before']}")
    sizes = Sizes(options.jobs, options.burst)
    try:
        if options.slurm:
            slurm.require_programs()
        figures, detail = _portal(options.data, sizes)
        if options.slurm:
            slurm_figures, detail["slurm"] = _slurm(options.slurm_jobs, options.burst)
            figures |= slurm_figures
    except Failed as failure:
        sys.stderr.write(f"no figures: {failure}\n")
        return 1
    if options.record:
        record = {**figures, **circumstances, "detail": detail}
        report.write(report.MEASUREMENTS / "dispatch.json", record)
    report.print_figures(figures)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.dispatch", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--jobs", type=int, default=100, help="jobs one after the other")
    parser.add_argument("--burst", type=int, default=300, help="jobs at once, members of the array")
    parser.add_argument("--slurm", action="store_true", help="measure Slurm beside it")
    parser.add_argument("--slurm-jobs", type=int, default=30, help="of them, one after the other")
    parser.add_argument("--data", type=Path, help="keep the portal's data in this folder")
    parser.add_argument(
        "--record", action="store_true", help="write docs/measurements/dispatch.json"
    )
    return parser.parse_args()


def _portal(data: Path | None, sizes: Sizes) -> tuple[dict[str, float], dict[str, Any]]:
    with Embedded(data) as portal:
        api = portal.api()
        detail: dict[str, Any] = {"gpus": _gpus(api), "jobs": sizes.jobs, "burst": sizes.burst}
        for _ in range(WARM_UP):
            _start_latency(api)
        latencies = [_start_latency(api) for _ in range(sizes.jobs)]
        figures = {
            "start_p50_s": round(percentile(latencies, 50), 4),
            "start_p99_s": round(percentile(latencies, 99), 4),
        }
        detail |= {
            "start_min_s": round(min(latencies), 4),
            "start_max_s": round(max(latencies), 4),
        }
        say(f"submit to process start, {sizes.jobs} jobs: {figures}")
        burst_s = _burst(portal, sizes.burst)
        figures["jobs_per_s"] = round(sizes.burst / burst_s, 1)
        say(f"{sizes.burst} jobs, one POST each: {burst_s:.2f} s, {figures['jobs_per_s']}/s")
        array_s = _array(api, sizes.burst)
        figures["array_jobs_per_s"] = round(sizes.burst / array_s, 1)
        say(f"array of {sizes.burst}: {array_s:.2f} s, {figures['array_jobs_per_s']}/s")
        return figures, detail


def _gpus(api: Api) -> list[str]:
    return [
        f"{'simulated ' if gpu['simulated'] else ''}{gpu['model']}, mode {gpu['mode']}"
        for gpu in api.get("/gpus")["items"]
    ]


def _start_latency(api: Api) -> float:
    """Seconds from just before the POST until the supervisor's own note of the start."""
    api.connect()
    before = time.time()
    job_id = api.post("/jobs", JOB)["id"]
    job = api.wait_ended(f"/jobs/{job_id}", TIMEOUT_S)
    if job["state"] != "SUCCEEDED":
        raise Failed(f"job {job_id} ended as {job['state']}: {job['reason']}")
    started = datetime.fromisoformat(job["attempts"][-1]["started_at"])
    return started.timestamp() - before


def _burst(portal: Embedded, count: int) -> float:
    """Seconds from the first POST until no job lives any more, as a caller sees it."""
    apis = [portal.api() for _ in range(CONNECTIONS)]
    for api in apis:
        api.connect()
    started = time.monotonic()
    job_ids = in_parallel(
        count, CONNECTIONS, lambda worker: str(apis[worker].post("/jobs", JOB)["id"])
    )
    say(f"  submitted in {time.monotonic() - started:.2f} s")
    _wait_none_living(apis[0], job_ids[-1], started + TIMEOUT_S)
    took = time.monotonic() - started
    _all_succeeded(apis[0], set(job_ids), count)
    return took


def in_parallel(count: int, workers: int, work: Callable[[int], str]) -> list[str]:
    """Call ``work`` with the number of its worker, ``count`` times in all; give what it gave."""
    results: list[str] = []
    failures: list[BaseException] = []

    def loop(worker: int) -> None:
        try:
            for _ in range(worker, count, workers):
                results.append(work(worker))  # noqa: PERF401 - several threads add to it
        except BaseException as failure:  # noqa: BLE001 - raised again in the caller's thread
            failures.append(failure)

    threads = [threading.Thread(target=loop, args=[worker]) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


def _wait_none_living(api: Api, last_id: str, deadline: float) -> None:
    """Wait for the job that was submitted last, which asks little of the portal; then for all."""
    api.wait_ended(f"/jobs/{last_id}", TIMEOUT_S)
    while api.any_living(PROJECT):
        if time.monotonic() > deadline:
            raise Failed(f"jobs still live after {TIMEOUT_S} s")
        time.sleep(POLL_S)


def _all_succeeded(api: Api, job_ids: set[str], count: int) -> None:
    jobs = api.jobs(PROJECT, job_ids)
    bad = [job for job in jobs.values() if job["state"] != "SUCCEEDED"]
    if bad or len(jobs) != count:
        reasons = sorted({f"{job['state']}: {job['reason']}" for job in bad})
        raise Failed(f"{len(jobs) - len(bad)} of {count} jobs SUCCEEDED; others {reasons}")


def _array(api: Api, count: int) -> float:
    started = time.monotonic()
    api.connect()
    accepted = api.post("/jobs", {**JOB, "array_size": count})
    api.wait_ended(f"/arrays/{accepted['id']}", TIMEOUT_S)
    took = time.monotonic() - started
    _all_succeeded(api, set(accepted["job_ids"]), count)
    return took


def _slurm(jobs: int, burst: int) -> tuple[dict[str, float], dict[str, Any]]:
    with slurm.Cluster() as cluster:
        for _ in range(WARM_UP):
            cluster.start_latency()
        latencies = [cluster.start_latency() for _ in range(jobs)]
        started = time.monotonic()
        job_ids = in_parallel(burst, CONNECTIONS, lambda _: cluster.submit("/bin/true"))
        say(f"  submitted in {time.monotonic() - started:.2f} s")
        cluster.wait_empty(TIMEOUT_S)
        took = time.monotonic() - started
        cluster.all_completed(job_ids, burst)
        figures = {
            "slurm_start_p50_s": round(percentile(latencies, 50), 4),
            "slurm_jobs_per_s": round(burst / took, 1),
        }
        say(f"Slurm {cluster.version}, {jobs} jobs, then {burst} at once: {figures}")
        return figures, {
            "version": cluster.version,
            "jobs": jobs,
            "start_min_s": round(min(latencies), 4),
            "start_max_s": round(max(latencies), 4),
            "settings": slurm.SETTINGS,
        }


if __name__ == "__main__":
    sys.exit(main())
