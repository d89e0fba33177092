"""Commands about jobs."""

from __future__ import annotations

import sys
import time
import uuid
from pathlib import Path
from typing import Annotated, Any

import typer

from portal.cli.client import Portal
from portal.cli.failures import Exit, Failure
from portal.cli.output import show_json, show_pairs, show_table
from portal.cli.quantities import (
    compute_milli,
    memory_mib,
    moment,
    script_text,
    seconds,
    show_compute,
    show_memory,
    show_seconds,
    variable,
)

UNFINISHED = "QUEUED,STARTING,RUNNING"
_EXIT_OF = {
    "SUCCEEDED": Exit.SUCCEEDED,
    "FAILED": Exit.FAILED,
    "CANCELLED": Exit.CANCELLED,
    "TIMED_OUT": Exit.TIMED_OUT,
}
_LONGEST_POLL_MS = 30_000
_LOG_POLL_MS = 10_000
_LOG_CHUNK = 1_048_576
_SHORTEST_ROUND_S = 0.3

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JobId = Annotated[str, typer.Argument(metavar="ID", help="Id of a job or array, or vision/12.")]


def submit(
    project: Annotated[str, typer.Option(help="Short name of the project.")],
    command: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND [ARGS]...")] = None,
    template: Annotated[
        str | None, typer.Option(help="Start from a template of the project; options here win.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="GPU memory: 8GiB, 8192MiB or 8192; absent: a whole GPU.")
    ] = None,
    compute: Annotated[
        str | None, typer.Option(help="Percent of a GPU's compute; absent: as much as the memory.")
    ] = None,
    gpu_model: Annotated[str | None, typer.Option(help="Only on GPUs of this model.")] = None,
    form: Annotated[str | None, typer.Option(help="any, whole, share or mig.")] = None,
    name: Annotated[str | None, typer.Option(help="Shown in lists.")] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="May be given several times.")
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A secret of the project for the environment."),
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Sent along; without a command bash runs it there."
        ),
    ] = None,
    priority: Annotated[str | None, typer.Option(help="low, normal or high.")] = None,
    time_limit: Annotated[
        str | None, typer.Option(help="End it after 90s, 30m, 2h, 1h30m ...")
    ] = None,
    array: Annotated[
        int | None, typer.Option(help="So many jobs, told apart by GPUCOMMONS_ARRAY_INDEX.")
    ] = None,
    max_running: Annotated[
        int | None, typer.Option(help="So many members of the array run at once.")
    ] = None,
    max_attempts: Annotated[int | None, typer.Option(help="Tries in all.")] = None,
    retry_exit_codes: Annotated[
        str | None, typer.Option(help="Try again after these exit codes: 75,100-110.")
    ] = None,
    not_before: Annotated[
        str | None, typer.Option(help="Start not before 2026-03-31T14:00:00Z.")
    ] = None,
    after_ok: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Start after this job has succeeded; several times."),
    ] = None,
    after_any: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Start after this job has ended; several times."),
    ] = None,
    hold: Annotated[bool, typer.Option("--hold", help="Wait until it is released.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end; exit as 'wait'.")] = False,
    as_json: Json = False,
) -> None:
    """Submit a job. Safe to repeat: a lost answer never makes a second job."""
    wanted = {
        "project": project,
        "template": template,
        "command": command or None,
        "memory_mib": None if memory is None else memory_mib(memory),
        "compute_milli": None if compute is None else compute_milli(compute),
        "gpu_model": gpu_model,
        "form": form,
        "name": name,
        "env": dict(variable(text) for text in env) if env else None,
        "secrets": secret or None,
        "script": None if script is None else script_text(script),
        "script_name": None if script is None else script.name,
        "priority": priority,
        "time_limit_s": None if time_limit is None else seconds(time_limit, "--time-limit"),
        "array_size": array,
        "max_running": max_running,
        "max_attempts": max_attempts,
        "retry_exit_codes": retry_exit_codes.split(",") if retry_exit_codes else None,
        "not_before": None if not_before is None else moment(not_before, "--not-before"),
        "after_ok": after_ok or None,
        "after_any": after_any or None,
        "hold": hold or None,
    }
    if not command and template is None and script is None:
        raise Failure(
            Exit.USAGE,
            "cli.command_missing",
            "There is no command to run.",
            hint="Write it after --, or name a --template or a --script.",
        )
    body = {field: value for field, value in wanted.items() if value is not None}
    with Portal() as portal:
        accepted = portal.post("/jobs", body, key=str(uuid.uuid4()))
        if wait:
            kind = "arrays" if accepted["kind"] == "array" else "jobs"
            _wait_and_exit(portal, kind, accepted["id"], deadline=None, as_json=as_json)
    if as_json:
        show_json(accepted)
    else:
        typer.echo(accepted["id"])


def ps(
    project: Annotated[str | None, typer.Option(help="Only of this project.")] = None,
    state: Annotated[str | None, typer.Option(help="Only in these states, by commas.")] = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="Also those that have ended.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most so many.")] = 50,
    as_json: Json = False,
) -> None:
    """List jobs, newest first."""
    wanted = state if state or every else UNFINISHED
    with Portal() as portal:
        page = portal.get("/jobs", project=project, state=wanted, limit=limit)
    if as_json:
        show_json(page)
        return
    show_table(
        ("JOB", "NAME", "STATE", "MEMORY", "COMPUTE", "USER", "ID", "NOTE"),
        [
            (
                job["short_name"],
                job["name"],
                job["state"],
                show_memory(job["memory_mib"]),
                show_compute(job["compute_milli"]),
                job["user"],
                job["id"],
                _note(job),
            )
            for job in page["items"]
        ],
        empty="No jobs. Submit one with: gpucommons submit --project PROJECT -- COMMAND",
    )


def show(job_id: JobId, as_json: Json = False) -> None:
    """Show one job: why it waits or ended, where it ran, what it used and cost."""
    with Portal() as portal:
        kind, view = _find(portal, job_id)
    if as_json:
        show_json(view)
        return
    if kind == "arrays":
        show_pairs([("array", view["id"]), ("state", view["state"]), *view["counts"].items()])
        return
    use = view["usage"]
    show_pairs(
        [
            ("job", view["short_name"]),
            ("id", view["id"]),
            ("name", view["name"]),
            ("state", view["state"]),
            ("note", _note(view)),
            ("command", " ".join(view["command"])),
            ("memory", show_memory(view["memory_mib"])),
            ("compute", show_compute(view["compute_milli"])),
            ("submitted", view["submitted_at"]),
            ("started", view["started_at"]),
            ("ended", view["ended_at"]),
            ("metered", show_seconds(use["seconds"])),
            ("cost", use["cost"]["display"] + ("" if view["ended_at"] else " so far")),
        ]
    )
    for attempt in view["attempts"]:
        lease = attempt["lease"]
        kind = f"{lease['kind']} of {lease['gpu_model']}"
        label = " (simulated)" if lease["gpu_simulated"] else ""
        typer.echo(
            f"attempt {attempt['number']} on {lease['node_name']}: {kind}{label}, "
            f"{show_memory(lease['memory_mib'])}, {show_compute(lease['compute_milli'])}, "
            f"{attempt['end_reason'] or 'not ended'}"
        )


def logs(
    job_id: JobId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until the job ends.")] = False,
    attempt: Annotated[int | None, typer.Option(min=1, help="Default: the newest.")] = None,
) -> None:
    """Print what a job wrote, byte by byte as it wrote it."""
    with Portal() as portal:
        _copy_log(portal, job_id, attempt, wait_ms=_LOG_POLL_MS if follow else 0)


def wait(
    job_id: JobId,
    timeout: Annotated[
        str | None, typer.Option(help="Give up after 90s, 30m, 2h ...; exit code 5.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Wait until a job, or every member of an array, has ended.

    Exit codes: 0 succeeded, 1 failed, 3 cancelled, 4 timed out, 5 still not ended.
    """
    deadline = None if timeout is None else time.monotonic() + seconds(timeout, "--timeout")
    with Portal() as portal:
        kind, view = _find(portal, job_id)
        _wait_and_exit(portal, kind, view["id"], deadline=deadline, as_json=as_json)


def cancel(job_id: JobId, as_json: Json = False) -> None:
    """Cancel a job, or every member of an array."""
    with Portal() as portal:
        kind, view = _find(portal, job_id)
        after = portal.post(f"/{kind}/{view['id']}/cancel", None, key=str(uuid.uuid4()))
    if as_json:
        show_json(after)
    elif after["state"] in _EXIT_OF:
        typer.echo(f"{after['id']} {after['state']}")
    else:
        typer.echo(f"{after['id']} {after['state']}, is being cancelled")


def hold(job_id: JobId, as_json: Json = False) -> None:
    """Keep a waiting job from starting until it is released."""
    _change(job_id, "hold", as_json=as_json)


def release(job_id: JobId, as_json: Json = False) -> None:
    """Let a held job start again."""
    _change(job_id, "release", as_json=as_json)


def rerun(job_id: JobId, as_json: Json = False) -> None:
    """Submit the request of an earlier job as a new one."""
    _change(job_id, "rerun", as_json=as_json)


def _change(job_id: str, change: str, *, as_json: bool) -> None:
    with Portal() as portal:
        after = portal.post(f"/jobs/{job_id}/{change}", None, key=str(uuid.uuid4()))
    if as_json:
        show_json(after)
    else:
        typer.echo(after["id"])


def _copy_log(portal: Portal, job_id: str, attempt: int | None, *, wait_ms: int) -> None:
    """To the last byte there is; with ``wait_ms`` to the last that there will be."""
    offset = 0
    while True:
        began = time.monotonic()
        query = {"attempt": attempt, "offset": offset, "limit": _LOG_CHUNK, "wait_ms": wait_ms}
        answer = portal.call("GET", f"/jobs/{job_id}/log", query=query)
        sys.stdout.buffer.write(answer.content)
        sys.stdout.buffer.flush()
        offset = int(answer.headers["X-Log-Next-Offset"])
        if answer.headers["X-Log-Final"] == "true" or not (wait_ms or answer.content):
            return
        if not answer.content:
            _breathe(began)


def _wait_and_exit(
    portal: Portal, kind: str, view_id: str, *, deadline: float | None, as_json: bool
) -> None:
    while True:
        began = time.monotonic()
        left_ms = _LONGEST_POLL_MS if deadline is None else int((deadline - began) * 1000)
        view = portal.get(
            f"/{kind}/{view_id}",
            wait_ms=max(0, min(_LONGEST_POLL_MS, left_ms)),
            unless_state=UNFINISHED,
        )
        if view["state"] in _EXIT_OF:
            break
        if deadline is not None and time.monotonic() >= deadline:
            raise Failure(
                Exit.STILL_WAITING,
                "cli.still_waiting",
                f"{view_id} is still {view['state']}.",
                hint=view.get("wait_reason") or None,
            )
        _breathe(began)
    if as_json:
        show_json(view)
    else:
        typer.echo(f"{view_id} {view['state']}")
    raise typer.Exit(_EXIT_OF[view["state"]])


def _breathe(began: float) -> None:
    """Do not ask faster than a few times a second when the portal cannot let us wait."""
    time.sleep(max(0.0, _SHORTEST_ROUND_S - (time.monotonic() - began)))


def _find(portal: Portal, job_id: str) -> tuple[str, Any]:
    """Tell whether an id names a job or an array."""
    try:
        return "jobs", portal.get(f"/jobs/{job_id}")
    except Failure as failure:
        if failure.code != "jobs.not_found" or "/" in job_id:
            raise
        try:
            return "arrays", portal.get(f"/arrays/{job_id}")
        except Failure:
            raise failure from None


def _note(job: dict[str, Any]) -> str:
    """Why it waits and where in the queue, or why it ended."""
    if job["state"] == "QUEUED" and job["wait_reason"]:
        place = f" (place {job['wait_position']})" if job["wait_position"] else ""
        return f"{job['wait_reason']}{place}"
    return str(job["reason"])
