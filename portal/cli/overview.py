"""Commands about projects, use and nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from portal.cli.client import Portal
from portal.cli.jobs import Json
from portal.cli.output import show_json, show_table
from portal.cli.quantities import moment, show_compute, show_memory, show_seconds


def usage(
    project: Annotated[str | None, typer.Option(help="Only of this project.")] = None,
    since: Annotated[str | None, typer.Option(help="From this day or time on (UTC).")] = None,
    until: Annotated[str | None, typer.Option(help="Up to this day or time (UTC).")] = None,
    by: Annotated[str, typer.Option(help="project, user or job.")] = "project",
    as_json: Json = False,
) -> None:
    """Show metered use and its cost; 30 days unless told otherwise."""
    period = {
        "since": None if since is None else moment(since, "--since"),
        "until": None if until is None else moment(until, "--until"),
    }
    with Portal() as portal:
        answer = portal.get("/usage", project=project, group=by, **period)
    if as_json:
        show_json(answer)
        return
    lines = [
        (*_who(line), _time(line), _gpu(line), line["cost"]["display"]) for line in answer["items"]
    ]
    if lines:
        total = answer["total"]
        lines.append(("total", "", "", _time(total), _gpu(total), total["cost"]["display"]))
    show_table(
        ("PROJECT", "USER", "JOB", "TIME", "GPU TIME", "COST"), lines, empty="Nothing was used."
    )


def projects(as_json: Json = False) -> None:
    """List your projects."""
    with Portal() as portal:
        answer = portal.get("/projects")
    if as_json:
        show_json(answer)
        return
    rows = [(project["slug"], project["name"], project["id"]) for project in answer["items"]]
    show_table(
        ("PROJECT", "NAME", "ID"), rows, empty="You are in no project. Ask an administrator."
    )


def nodes(as_json: Json = False) -> None:
    """List nodes and their GPUs."""
    with Portal() as portal:
        answer = portal.get("/nodes")
    if as_json:
        show_json(answer)
        return
    rows = [
        (
            node["name"],
            node["state"],
            gpu["index"],
            gpu["model"] + (" (simulated)" if gpu["simulated"] else ""),
            show_memory(gpu["memory_mib"]),
            f"{show_compute(gpu['compute_leased_milli'])}, {show_memory(gpu['memory_leased_mib'])}",
            gpu["mode"] if gpu["healthy"] else f"unhealthy: {gpu['health_reason']}",
        )
        for node in answer["items"]
        for gpu in node["gpus"]
    ]
    heads = ("NODE", "STATE", "GPU", "MODEL", "MEMORY", "LEASED", "MODE")
    show_table(heads, rows, empty="No GPUs yet.")


def _who(line: dict[str, object]) -> tuple[object, object, object]:
    return line["project"], line["user"] or "", line["job"] or ""


def _time(line: dict[str, float]) -> str:
    return show_seconds(line["seconds"])


def _gpu(line: dict[str, float]) -> str:
    return show_seconds(line["gpu_seconds"])
