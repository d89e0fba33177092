"""The whole way of a job on a real NVIDIA GPU: inventory, a whole GPU, two shares at once, cost.

``python -m benchmarks.real_gpu --python PATH [--record PATH]``, where PATH is an interpreter that
has torch or cupy and that any user may execute. Starts an embedded portal of its own and reads
everything through its REST API. `docs/measurements/README.md` says what the figures mean.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import gpu_load, report
from benchmarks.api import LIVING, Api, Failed
from benchmarks.embedded import Embedded
from benchmarks.report import say

PROJECT = "vision"
TIMEOUT_S = 240
POLL_S = 0.5
LEAST_OVERLAP_S = 5.0
# CUDA contexts and libraries come on top of what a program allocates.
PASSED_PREFIXES = ("LD_LIBRARY_PATH", "CUDA_", "NCCL_", "NVSHMEM_", "TORCH_", "PYTORCH_")
SET_BY_THE_AGENT = ("CUDA_VISIBLE_DEVICES",)


@dataclass(frozen=True)
class Load:
    """What the job's program does."""

    python: str
    gib: float
    seconds: float

    @property
    def command(self) -> list[str]:
        text = Path(gpu_load.__file__).read_text()
        words = ["--gib", str(self.gib), "--seconds", str(self.seconds)]
        return [self.python, "-c", text, *words]


@dataclass
class Watched:
    """Jobs that run together, and what the portal said of them meanwhile."""

    job_ids: list[str]
    posted_at: list[float] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)


def main() -> int:
    options = _options()
    circumstances = report.circumstances("benchmarks.real_gpu")
    try:
        with Embedded() as portal:
            figures = _measure(portal.api(), options)
    except Failed as failure:
        sys.stderr.write(f"no figures: {failure}\n")
        return 1
    record = {**figures, **circumstances}
    if options.record:
        report.write(options.record, record)
    report.print_figures(record)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.real_gpu", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter with torch or cupy, for the jobs"
    )
    parser.add_argument("--whole-gib", type=float, default=40, help="allocated by the whole GPU")
    parser.add_argument("--share-gib", type=float, default=12, help="allocated by each share")
    parser.add_argument("--share-memory-mib", type=int, default=16 * 1024)
    parser.add_argument("--share-compute-milli", type=int, default=250)
    parser.add_argument("--seconds", type=float, default=15, help="each program multiplies so long")
    parser.add_argument("--record", type=Path, metavar="PATH", help="write the record there")
    return parser.parse_args()


def _measure(api: Api, options: argparse.Namespace) -> dict[str, Any]:
    inventory = _inventory(api)
    say(f"GPUs by NVML: {[(gpu['model'], gpu['memory_mib']) for gpu in inventory['gpus']]}")
    whole = _run(api, [{"form": "whole"}], Load(options.python, options.whole_gib, options.seconds))
    say(f"whole GPU: {whole['jobs'][0]['program'][-1]}")
    share = {
        "form": "share",
        "memory_mib": options.share_memory_mib,
        "compute_milli": options.share_compute_milli,
    }
    shares = _run(api, [share, share], Load(options.python, options.share_gib, options.seconds))
    say(f"two shares: {[job['program'][-1] for job in shares['jobs']]}")
    overlap_s = _overlap_s(shares["jobs"])
    if overlap_s < LEAST_OVERLAP_S:
        raise Failed(f"the two shares ran together for {overlap_s:.1f} s only")
    return {
        **inventory,
        "whole": whole,
        "shares": {**shares, "together_s": round(overlap_s, 3)},
        "usage_of_project": api.get("/usage", project=PROJECT)["total"],
    }


def _inventory(api: Api) -> dict[str, Any]:
    (node,) = api.get("/nodes")["items"]
    gpus = [gpu for gpu in node["gpus"] if not gpu["simulated"]]
    if not gpus:
        raise Failed("this machine has no NVIDIA GPU that NVML shows; the portal simulates some")
    unfit = [gpu for gpu in gpus if not gpu["healthy"] or gpu["mode"] != "share"]
    if unfit:
        raise Failed(f"unhealthy, or not in share mode: {unfit}")
    shown = ("uuid", "index", "model", "memory_mib", "mode", "healthy", "simulated")
    return {
        "node": {"isolated": node["isolated"], "agent_version": node["agent_version"]},
        "gpus": [{name: gpu[name] for name in shown} for gpu in gpus],
    }


def _run(api: Api, sizes: list[dict[str, Any]], load: Load) -> dict[str, Any]:
    """Submit one job for each size at once, watch them, and read everything when they ended."""
    watched = Watched([])
    for size in sizes:
        watched.posted_at.append(time.time())
        body = {"project": PROJECT, "command": load.command, "env": _environment(), **size}
        watched.job_ids.append(api.post("/jobs", {**body, "max_attempts": 1})["id"])
    _watch(api, watched)
    jobs = [
        _ended(api, job_id, posted_at)
        for job_id, posted_at in zip(watched.job_ids, watched.posted_at, strict=True)
    ]
    _check_memory(watched.samples, load.gib * len(jobs))
    return {"jobs": jobs, "portal_while_running": watched.samples}


def _environment() -> dict[str, str]:
    """What libraries of this machine need; a job inherits nothing from the agent."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(PASSED_PREFIXES) and name not in SET_BY_THE_AGENT
    }


def _watch(api: Api, watched: Watched) -> None:
    """Read GPU and leases until every job has ended; what repeats the line before is left out."""
    began = time.monotonic()
    before: dict[str, Any] = {}
    while True:
        jobs = [api.get(f"/jobs/{job_id}") for job_id in watched.job_ids]
        seen = {"gpus": [_gpu_sample(gpu) for gpu in api.get("/gpus")["items"]]}
        seen["jobs"] = [_job_sample(job) for job in jobs]
        if seen != before:
            watched.samples.append({"at_s": round(time.monotonic() - began, 1), **seen})
            before = seen
        if all(job["state"] not in LIVING.split(",") for job in jobs):
            return
        if time.monotonic() - began > TIMEOUT_S:
            raise Failed(f"jobs still live after {TIMEOUT_S} s: {seen['jobs']}")
        time.sleep(POLL_S)


def _gpu_sample(gpu: dict[str, Any]) -> dict[str, Any]:
    names = ("utilisation_percent", "memory_used_mib", "compute_leased_milli", "memory_leased_mib")
    return {name: gpu[name] for name in names}


def _job_sample(job: dict[str, Any]) -> dict[str, Any]:
    lease = job["attempts"][-1]["lease"] if job["attempts"] else {}
    names = ("memory_used_mib", "memory_peak_mib", "utilisation_percent")
    return {"state": job["state"], **{name: lease.get(name) for name in names}}


def _ended(api: Api, job_id: str, posted_at: float) -> dict[str, Any]:
    job = api.get(f"/jobs/{job_id}")
    text, headers = api.text(f"/jobs/{job_id}/log", limit=1_048_576)
    if job["state"] != "SUCCEEDED":
        raise Failed(f"job {job['short_name']} {job['state']}: {job['reason']}\n{text[-3000:]}")
    (attempt,) = job["attempts"]
    started, ended = (datetime.fromisoformat(attempt[name]) for name in ("started_at", "ended_at"))
    ran_s = (ended - started).total_seconds()
    if abs(job["usage"]["seconds"] - ran_s) > 0.05:
        raise Failed(f"metered {job['usage']['seconds']} s, but the process ran {ran_s} s")
    return {
        "submit_to_start_s": round(started.timestamp() - posted_at, 4),
        "ran_s": round(ran_s, 3),
        "started_at": attempt["started_at"],
        "ended_at": attempt["ended_at"],
        "exit_code": attempt["exit_code"],
        "lease": attempt["lease"],
        "usage": job["usage"],
        "program": [json.loads(line) for line in text.splitlines() if line.startswith("{")],
        "log_is_final": headers["X-Log-Final"] == "true",
    }


def _check_memory(samples: list[dict[str, Any]], gib: float) -> None:
    """The GPU must have shown at least what the programs allocated together."""
    shown = max(
        (gpu["memory_used_mib"] or 0 for sample in samples for gpu in sample["gpus"]), default=0
    )
    if shown < gib * 1024:
        raise Failed(f"the portal showed {shown} MiB in use at most; {gib:g} GiB were allocated")


def _overlap_s(jobs: list[dict[str, Any]]) -> float:
    begins = [datetime.fromisoformat(job["started_at"]) for job in jobs]
    ends = [datetime.fromisoformat(job["ended_at"]) for job in jobs]
    return (min(ends) - max(begins)).total_seconds()


if __name__ == "__main__":
    sys.exit(main())
