"""Leases with real processes, without the port: what an order does and what becomes of it."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from agent import clock
from agent.errors import Refused
from agent.runtime import process_tree, records
from agent.runtime.process import UnsafeFolder, make_work_base
from agent.wire import (
    EndReason,
    Enforcement,
    EventKind,
    FileSpec,
    LeaseReport,
    LeaseSpec,
    Observed,
    SliceKind,
    SliceSpec,
)
from tests.agent.conftest import Node
from tests.agent.support import absent, eventually, running

IS_ROOT = os.geteuid() == 0


def ended(node: Node, lease_id: str) -> LeaseReport:
    def over() -> LeaseReport | None:
        found = node.leases.report(lease_id)
        return found if found.observed is Observed.ENDED else None

    return eventually(over, f"{lease_id} ends")


def settled(node: Node, lease_id: str) -> LeaseReport | None:
    found = node.leases.report(lease_id)
    return found if found.observed in {Observed.ENDED, Observed.ABSENT} else None


def started(node: Node, lease_id: str) -> LeaseReport:
    def up() -> LeaseReport | None:
        found = node.leases.report(lease_id)
        return found if found.started_at is not None else None

    return eventually(up, f"{lease_id} starts")


def output(node: Node, lease_id: str) -> str:
    text, _, _ = node.leases.read_log(lease_id, offset=0, limit=10**6, wait_ms=0)
    return text.decode()


def kinds(node: Node, lease_id: str) -> list[str]:
    return [
        found["kind"]
        for found in node.store.events(0, 1000)
        if found["lease"]["lease_id"] == lease_id
    ]


def supervisor_pid(node: Node, lease_id: str) -> int:
    claim = eventually(lambda: records.read_claim(node.runtime.folder(lease_id)))
    assert claim.pid is not None
    return claim.pid


def test_a_process_runs_and_its_end_is_told(node: Node) -> None:
    first = node.leases.apply(running("L", node.share, "sh", "-c", "echo hello; exit 3"))
    assert first.observed is Observed.ACCEPTED
    assert first.enforcement_memory is Enforcement.NONE
    end = ended(node, "L")
    assert (end.end_reason, end.exit_code) == (EndReason.EXITED, 3)
    assert end.started_at is not None
    assert end.ended_at is not None
    assert end.started_at <= end.ended_at
    assert end.duration_ns is not None
    assert output(node, "L") == "hello\n"
    assert kinds(node, "L") == ["started", "ended"]


def test_the_environment_is_the_given_one_and_the_gpus(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_AGENT", "1")
    spec = running("L", node.share, "env", env={"MINE": "yes", "GPUCOMMONS_MEMORY_MIB": "9"})
    node.leases.apply(spec)
    ended(node, "L")
    found = dict(line.split("=", 1) for line in output(node, "L").splitlines())
    assert "SECRET_OF_THE_AGENT" not in found
    assert found["MINE"] == "yes"
    assert found["GPUCOMMONS_MEMORY_MIB"] == "1000"
    assert found["GPUCOMMONS_GPU_UUID"] == node.share
    assert found["CUDA_VISIBLE_DEVICES"] == ""
    assert found["HOME"] == found["TMPDIR"] == str(node.runtime.work_folder("L"))


def test_the_work_folder_goes_with_the_job(node: Node) -> None:
    node.leases.apply(running("L", node.share, "touch", "here"))
    assert ended(node, "L").exit_code == 0
    eventually(lambda: not node.runtime.work_folder("L").exists())


def test_a_missing_command_is_named(node: Node) -> None:
    node.leases.apply(running("L", node.share, "no-such-command"))
    end = ended(node, "L")
    assert end.end_reason is EndReason.COMMAND_NOT_FOUND
    assert end.detail == "no-such-command: cannot be executed: No such file or directory"
    assert end.started_at is None
    assert kinds(node, "L") == ["ended"]


def test_absent_stops_the_process(node: Node) -> None:
    node.leases.apply(running("L", node.share, "sleep", "100"))
    pid = started(node, "L").pid
    node.leases.apply(absent("L", 2))
    end = ended(node, "L")
    assert (end.generation, end.end_reason) == (2, EndReason.STOPPED)
    assert end.exit_signal == signal.SIGTERM
    assert pid is not None
    assert process_tree.stat(pid) is None


def test_a_repeated_order_starts_nothing_more(node: Node) -> None:
    spec = running("L", node.share, "sh", "-c", "echo once")
    node.leases.apply(spec)
    ended(node, "L")
    assert node.leases.apply(spec).observed is Observed.ENDED
    assert output(node, "L") == "once\n"
    assert kinds(node, "L") == ["started", "ended"]


def test_two_orders_at_once_start_one_process(node: Node) -> None:
    spec = running("L", node.share, "sh", "-c", "echo once")
    barrier = threading.Barrier(8)

    def order(_: int) -> LeaseReport:
        barrier.wait()
        return node.leases.apply(spec)

    with ThreadPoolExecutor(8) as pool:
        assert {found.generation for found in pool.map(order, range(8))} == {1}
    ended(node, "L")
    assert output(node, "L") == "once\n"


def test_start_and_stop_at_once_end_in_one_end(node: Node) -> None:
    for number in range(20):
        lease_id = f"L{number}"
        barrier = threading.Barrier(2)
        orders = [
            running(lease_id, node.share, "sh", "-c", "echo once; sleep 100"),
            absent(lease_id, 2),
        ]

        def order(spec: LeaseSpec, barrier: threading.Barrier = barrier) -> str | None:
            barrier.wait()
            try:
                node.leases.apply(spec)
            except Refused as refused:
                return refused.problem.code
            return None

        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(order, orders))
        assert set(answers) <= {None, "agent.stale_generation"}
        final = eventually(partial(settled, node, lease_id))
        assert final.generation == 2
        assert kinds(node, lease_id).count("ended") == (final.observed is Observed.ENDED)


def test_of_many_wishes_as_many_fit_as_there_is_room(node: Node) -> None:
    barrier = threading.Barrier(8)

    def order(number: int) -> str:
        barrier.wait()
        spec = running(f"L{number}", node.share, "sleep", "100", compute_milli=250)
        try:
            return node.leases.apply(spec).observed
        except Refused as refused:
            return refused.problem.code

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(order, range(8)))
    assert answers.count("agent.slice_taken") == 4
    assert len(node.store.active(node.share)) == 4


def test_a_refusal_is_final_told_and_repeated(node: Node) -> None:
    spec = running("L", "GPU-nowhere", "true")
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            node.leases.apply(spec)
        assert refused.value.problem.code == "agent.gpu_unknown"
    assert kinds(node, "L") == [EventKind.REFUSED]
    assert node.leases.apply(absent("L", 2)).observed is Observed.REFUSED


def test_a_start_meant_for_another_record_is_refused_and_leaves_nothing(node: Node) -> None:
    meant_elsewhere = running("L", node.share, "true").model_copy(update={"stream_id": "lost"})
    with pytest.raises(Refused) as refused:
        node.leases.apply(meant_elsewhere)
    assert refused.value.problem.code == "agent.other_record"
    assert node.store.lease("L") is None
    meant_here = meant_elsewhere.model_copy(update={"stream_id": node.store.stream_id})
    node.leases.apply(meant_here)
    assert ended(node, "L").exit_code == 0


def test_a_slice_is_free_when_its_end_is_told(node: Node) -> None:
    whole = SliceSpec(
        gpu_uuid=node.share, kind=SliceKind.WHOLE, memory_mib=143155, compute_milli=1000
    )
    for number in range(3):
        spec = running(f"L{number}", node.share, "true")
        node.leases.apply(spec.model_copy(update={"slice": whole}))
        assert ended(node, f"L{number}").enforcement_memory is Enforcement.HARDWARE


def test_a_mig_instance_is_given_once(node: Node) -> None:
    def spec(lease_id: str, start: int) -> LeaseSpec:
        wanted = SliceSpec(
            gpu_uuid=node.mig,
            kind=SliceKind.MIG,
            memory_mib=71424,
            compute_milli=429,
            mig_profile="3g.71gb",
            mig_start=start,
        )
        order = running(lease_id, node.mig, "sleep", "100")
        return order.model_copy(update={"slice": wanted})

    node.leases.apply(spec("A", 0))
    node.leases.apply(spec("B", 4))
    with pytest.raises(Refused) as refused:
        node.leases.apply(spec("C", 0))
    assert refused.value.problem.code == "agent.slice_taken"


def test_absent_before_anything_else_stays_absent(node: Node) -> None:
    assert node.leases.apply(absent("L", 5)).observed is Observed.ABSENT
    with pytest.raises(Refused) as refused:
        node.leases.apply(running("L", node.share, "true", generation=4))
    assert refused.value.problem.code == "agent.stale_generation"
    assert node.leases.report("L").observed is Observed.ABSENT
    assert not node.runtime.folder("L").exists()


def test_a_stop_before_the_claim_means_never_started(folder: Path) -> None:
    never_claims = folder / "never-claims"
    never_claims.write_text("#!/bin/sh\nexec sleep 2\n")
    never_claims.chmod(0o755)
    node = Node(folder, never_claims)
    node.leases.resume()
    node.leases.apply(running("L", node.share, "true"))
    node.leases.apply(absent("L", 2))
    end = ended(node, "L")
    assert end.end_reason is EndReason.NEVER_STARTED
    assert end.started_at is None
    node.close()


@pytest.mark.parametrize("script", ["exit 1", None])
def test_a_supervisor_that_never_claims_is_given_up(folder: Path, script: str | None) -> None:
    broken = folder / "broken"
    if script is not None:
        broken.write_text(f"#!/bin/sh\n{script}\n")
        broken.chmod(0o755)
    node = Node(folder, broken)
    node.leases.resume()
    node.leases.apply(running("L", node.share, "true"))
    assert ended(node, "L").end_reason is EndReason.START_FAILED
    node.close()


def test_a_killed_supervisor_is_told_as_lost(node: Node) -> None:
    node.leases.apply(running("L", node.share, "sh", "-c", "setsid sleep 100 & sleep 100"))
    started(node, "L")
    os.kill(supervisor_pid(node, "L"), signal.SIGKILL)
    end = ended(node, "L")
    assert end.end_reason is EndReason.SUPERVISOR_LOST
    assert end.duration_ns is None
    assert node.runtime.kill_leftovers("L", None)
    assert kinds(node, "L") == ["started", "ended"]


def test_a_new_agent_adopts_what_runs(folder: Path) -> None:
    first = Node(folder)
    first.leases.resume()
    first.leases.apply(running("L", first.share, "sh", "-c", "sleep 0.5; exit 4"))
    pid = started(first, "L").pid
    first.close()
    second = Node(folder)
    second.leases.resume()
    assert second.leases.report("L").pid == pid
    end = ended(second, "L")
    assert (end.exit_code, end.pid) == (4, pid)
    assert kinds(second, "L") == ["started", "ended"]
    second.close()


def test_a_new_agent_reads_ends_that_nobody_saw(folder: Path) -> None:
    first = Node(folder)
    first.leases.apply(running("L", first.share, "sh", "-c", "echo once; exit 5"))
    eventually(lambda: first.runtime.look("L").exit)
    first.close()
    second = Node(folder)
    second.leases.resume()
    assert second.leases.report("L").exit_code == 5
    assert output(second, "L") == "once\n"
    assert kinds(second, "L") == ["started", "ended"]
    second.close()


def test_a_lease_of_an_earlier_boot_is_lost(folder: Path) -> None:
    first = Node(folder)
    first.leases.resume()
    first.leases.apply(running("L", first.share, "sleep", "100"))
    started(first, "L")
    first.close()
    os.kill(supervisor_pid(first, "L"), signal.SIGKILL)
    second = Node(folder)
    row = second.store.lease("L")
    assert row is not None
    second.store.put(replace(row, boot_id="an-earlier-boot"))
    second.leases.resume()
    end = ended(second, "L")
    assert end.end_reason is EndReason.SUPERVISOR_LOST
    assert end.detail is not None
    assert "restarted" in end.detail
    second.close()


def test_a_stopped_node_leaves_nothing_running(node: Node, monkeypatch) -> None:
    monkeypatch.setattr("agent.leases.NODE_STOP_GRACE_S", 0.3)
    stubborn = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    node.leases.apply(running("A", node.share, "sleep", "100"))
    node.leases.apply(running("B", node.share, "sh", "-c", stubborn, stop_grace_s=600))
    pids = [started(node, "A").pid, started(node, "B").pid]
    eventually(lambda: output(node, "B"))
    node.leases.stop_jobs()
    assert {node.leases.report(lease_id).end_reason for lease_id in "AB"} == {
        EndReason.NODE_STOPPED
    }
    assert all(pid is not None and process_tree.stat(pid) is None for pid in pids)
    with pytest.raises(Refused) as refused:
        node.leases.apply(running("C", node.share, "true"))
    assert (refused.value.problem.status, refused.value.problem.code) == (503, "agent.stopping")


def test_what_is_over_is_forgotten_after_a_while(node: Node) -> None:
    node.leases.apply(running("L", node.share, "true"))
    ended(node, "L")
    node.leases.forget_before(clock.wall_ns())
    assert not node.runtime.folder("L").exists()
    with pytest.raises(Refused) as refused:
        node.leases.report("L")
    assert refused.value.problem.status == 404


def test_a_sick_gpu_takes_no_lease_and_its_health_is_told(node: Node) -> None:
    node.source.fail(node.share, "XID 79")
    node.inventory.refresh()
    with pytest.raises(Refused) as refused:
        node.leases.apply(running("L", node.share, "true"))
    assert refused.value.problem.code == "agent.gpu_unhealthy"
    node.source.repair(node.share)
    node.inventory.refresh()
    node.leases.apply(running("M", node.share, "true"))
    told = [
        found["gpu"]["healthy"]
        for found in node.store.events(0, 100)
        if found["kind"] == EventKind.GPU_HEALTH
    ]
    assert told == [False, True]


def test_the_log_waits_for_bytes_and_says_when_it_is_final(node: Node) -> None:
    node.leases.apply(running("L", node.share, "sh", "-c", "echo one; sleep 0.2; echo two"))
    text, size, final = node.leases.read_log("L", offset=0, limit=100, wait_ms=20_000)
    assert (text, size, final) == (b"one\n", 4, False)
    text, size, final = node.leases.read_log("L", offset=4, limit=2, wait_ms=20_000)
    assert (text, size, final) == (b"tw", 8, False)
    ended(node, "L")
    assert node.leases.read_log("L", offset=6, limit=100, wait_ms=0) == (b"o\n", 8, True)
    assert node.leases.read_log("L", offset=99, limit=100, wait_ms=0) == (b"", 8, True)


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a job its own user")
def test_jobs_are_apart_from_each_other_and_from_the_agent(node: Node) -> None:
    node.leases.apply(running("A", node.share, "sh", "-c", "echo secret > s; sleep 100"))
    started(node, "A")
    script = f"id -u; cat {node.runtime.work_folder('A')}/s; ls {node.data}; ls {folder_of(node)}"
    node.leases.apply(running("B", node.share, "sh", "-c", script))
    ended(node, "B")
    lines = output(node, "B").splitlines()
    row = node.store.lease("A")
    assert row is not None
    assert int(lines[0]) == (row.uid or 0) + 1
    assert len(lines) == 4
    assert all("Permission denied" in line for line in lines[1:])


def folder_of(node: Node) -> Path:
    return node.runtime.work_folder("A").parent


def test_a_work_base_of_somebody_else_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with pytest.raises(UnsafeFolder):
        make_work_base(link)
    writable = tmp_path / "open"
    writable.mkdir()
    writable.chmod(0o777)
    with pytest.raises(UnsafeFolder):
        make_work_base(writable)


def test_files_of_an_order_lie_in_the_work_folder_of_its_user(node: Node) -> None:
    text = "import os; print(open('d/a').read(), os.stat('d').st_uid == os.getuid())"
    order = running("files", node.share, "python3", "-c", text)
    assert order.process is not None
    process = order.process.model_copy(
        update={"files": [FileSpec(path="d/a", content_base64="aGVsbG8=", mode=0o600)]}
    )

    node.leases.apply(order.model_copy(update={"process": process}))

    assert ended(node, "files").exit_code == 0
    assert output(node, "files") == "hello True\n"


def test_files_that_leave_the_folder_are_refused(node: Node) -> None:
    order = running("hostile", node.share, "true")
    assert order.process is not None
    process = order.process.model_copy(update={"files": [FileSpec(path="../a", content_base64="")]})

    with pytest.raises(Refused, match="work folder"):
        node.leases.apply(order.model_copy(update={"process": process}))
