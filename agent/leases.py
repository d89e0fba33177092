"""Leases on this node: orders come in, processes start and end, events go out.

What an order means is decided in `rules` and whether its slice fits in `slices.guard`, both pure;
here the decision is stored before anything is done, and whatever was done is found again in the
runtime's records. So every step may be repeated, by this agent or by the next one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from agent import clock, crash, log, rules
from agent.errors import Refused
from agent.inventory import GpuInventory
from agent.reports import event, report
from agent.rules import Action
from agent.runtime.environment import job_environment
from agent.runtime.process import Launch, ProcessRuntime
from agent.runtime.records import Exit, Sighting
from agent.slices import guard
from agent.store import Lease, Store
from agent.watcher import Watcher
from agent.wire import (
    Desired,
    EndReason,
    EventKind,
    LeaseReport,
    LeaseSpec,
    Observed,
    Problem,
    ProcessSpec,
    SliceSpec,
)

RETENTION_S = 7 * 24 * 3600
FORGET_EVERY_S = 600
FULL_SCAN_EVERY = 5
STARTS_TRIED = 3
NODE_STOP_GRACE_S = 10
NODE_STOP_SLACK_S = 10
_STRIPES = 64
_LOG_POLL_S = 0.05


class Leases:
    """All leases of one agent. Orders may come from several threads at once."""

    def __init__(
        self,
        store: Store,
        runtime: ProcessRuntime,
        inventory: GpuInventory,
        *,
        isolated: bool,
        user: str,
    ) -> None:
        self._store = store
        self._runtime = runtime
        self._inventory = inventory
        self._isolated = isolated
        self._user = user
        self._locks = [threading.RLock() for _ in range(_STRIPES)]
        self._starts: dict[str, int] = {}
        self._tidier = ThreadPoolExecutor(1, thread_name_prefix="tidier")
        self._stopping = False
        self._forgotten_at = 0.0
        self._scans = 0
        self.watcher = Watcher(runtime.notify_path, changed=self.settle, scan=self._look_around)

    def _lock(self, lease_id: str) -> threading.RLock:
        return self._locks[hash(lease_id) % _STRIPES]

    # -- orders ----------------------------------------------------------------------------------

    def apply(self, spec: LeaseSpec) -> LeaseReport:
        """Carries out an order; `Refused` says why not. The process may begin after the answer."""
        rules.check(spec)
        if self._stopping:
            raise Refused(
                503,
                "agent.stopping",
                "the agent is stopping",
                hint="try again when it is back",
            )
        self._check_record(spec)
        with self._lock(spec.lease_id):
            action, lease = self._take_order(spec)
            if lease.observed is Observed.REFUSED and lease.desired is Desired.RUNNING:
                raise _stored_refusal(lease)
            if action is Action.BEGIN and lease.active:
                self._begin(lease)
            elif lease.active and lease.desired is Desired.ABSENT:
                self._runtime.stop(lease.lease_id)
                lease = self._settle_locked(lease)
            crash.point("agent.answer.ready")
            return report(lease)

    def _check_record(self, spec: LeaseSpec) -> None:
        """A start that another record may have obeyed already must not be obeyed again."""
        meant = spec.stream_id
        if spec.desired is Desired.RUNNING and meant not in (None, self._store.stream_id):
            raise Refused(
                409,
                "agent.other_record",
                "the order is meant for a record that this node no longer has",
                field="stream_id",
                hint="reconcile the node first",
            )

    def _take_order(self, spec: LeaseSpec) -> tuple[Action, Lease]:
        body = rules.canonical(spec)
        crash.point("agent.lease.before_store")
        with self._store.transaction():
            known = self._store.lease(spec.lease_id)
            action = rules.decide(known, spec, body)
            if known is not None and action is Action.REPEAT:
                return action, known
            if action is Action.BEGIN:
                lease = self._admit(spec, body)
            elif known is None:
                lease = Lease(spec.lease_id, spec.generation, spec.desired, Observed.ABSENT, body)
            else:
                lease = replace(known, generation=spec.generation, desired=spec.desired, body=body)
            if action is Action.STOP and lease.stop_reason is None:
                lease = replace(lease, stop_reason=EndReason.STOPPED)
            self._put(lease)
            if lease.observed is Observed.REFUSED and action is Action.BEGIN:
                self._store.tell(event(EventKind.REFUSED, lease))
        crash.point("agent.lease.stored")
        if lease.observed is Observed.REFUSED:
            crash.point("agent.refused.stored")
        return action, lease

    def _admit(self, spec: LeaseSpec, body: str) -> Lease:
        """The new lease, accepted or refused. Inside the transaction that stores it."""
        assert spec.slice is not None  # noqa: S101 - rules.check has seen to it
        slice_text, process_text = rules.start_texts(spec)
        lease = Lease(
            spec.lease_id,
            spec.generation,
            spec.desired,
            Observed.ACCEPTED,
            body,
            slice=slice_text,
            process=process_text,
            gpu_uuid=spec.slice.gpu_uuid,
            boot_id=clock.boot_id(),
        )
        active = [
            SliceSpec.model_validate_json(other.slice)
            for other in self._store.active(spec.slice.gpu_uuid)
            if other.slice is not None
        ]
        try:
            guard.check(self._inventory.get(spec.slice.gpu_uuid), spec.slice, active)
        except Refused as refused:
            return replace(
                lease,
                observed=Observed.REFUSED,
                detail=refused.problem.detail,
                problem=refused.problem.model_dump_json(),
            )
        enforced = guard.enforcement(spec.slice.kind)
        return replace(
            lease,
            uid=self._store.allocate_uid() if self._isolated else None,
            enforcement_memory=enforced.memory,
            enforcement_compute=enforced.compute,
        )

    def _put(self, lease: Lease) -> Lease:
        lease = replace(lease, updated_wall_ns=clock.wall_ns())
        self._store.put(lease)
        return lease

    def _begin(self, lease: Lease) -> None:
        tried = self._starts.get(lease.lease_id, 0)
        self._starts[lease.lease_id] = tried + 1
        if tried >= STARTS_TRIED:
            self._runtime.give_up(lease.lease_id, "the supervisor died before it began")
            return
        try:
            pid = self._runtime.start(self._launch(lease))
        except OSError as error:
            log.error("lease.start_failed", lease_id=lease.lease_id, error=str(error))
            self._runtime.give_up(lease.lease_id, f"cannot start a process: {error.strerror}")
            self._settle_locked(lease)
        else:
            self.watcher.watch(lease.lease_id, pid)

    def _launch(self, lease: Lease) -> Launch:
        process = ProcessSpec.model_validate_json(lease.process or "")
        slice_ = SliceSpec.model_validate_json(lease.slice or "")
        gpu = self._inventory.get(slice_.gpu_uuid)
        return Launch(
            lease_id=lease.lease_id,
            argv=process.argv,
            env=job_environment(
                process.env,
                lease_id=lease.lease_id,
                slice_=slice_,
                simulated=gpu is None or gpu.simulated,
                work=str(self._runtime.work_folder(lease.lease_id)),
                user="gpujob" if lease.uid is not None else self._user,
            ),
            uid=lease.uid,
            time_limit_ms=(process.time_limit_s or 0) * 1000,
            grace_ms=process.stop_grace_s * 1000,
            files=process.files,
        )

    # -- what became of it -----------------------------------------------------------------------

    def settle(self, lease_id: str) -> None:
        """Brings a lease's row up to what its records say; starts what should have started."""
        with self._lock(lease_id):
            lease = self._store.lease(lease_id)
            if lease is not None and lease.active:
                self._settle_locked(lease)

    def _settle_locked(self, lease: Lease) -> Lease:
        seen = self._runtime.look(lease.lease_id)
        if seen.exit is not None:
            return self._end(lease, seen, seen.exit)
        if seen.claim is None:
            if lease.stop_reason is not None:
                self._runtime.stop(lease.lease_id)
            elif not self.watcher.watching(lease.lease_id):
                self._begin(lease)
            return lease
        if seen.claim.by_agent:
            now = Exit(EndReason.NEVER_STARTED, clock.wall_ns(), clock.monotonic_ns())
            return self._end(lease, seen, now)
        if not seen.claim.alive:
            return self._lose(lease, seen)
        if seen.claim.pid is not None and not self.watcher.watching(lease.lease_id):
            self.watcher.watch(lease.lease_id, seen.claim.pid)
        if lease.stop_reason is not None:
            self._runtime.stop(lease.lease_id)
        return self._mark_running(lease, seen)

    def _with_start(self, lease: Lease, seen: Sighting) -> Lease:
        if seen.started is None:
            return lease
        return replace(
            lease,
            observed=Observed.RUNNING,
            pid=seen.started.pid,
            started_wall_ns=seen.started.wall_ns,
            started_mono_ns=seen.started.mono_ns,
        )

    def _mark_running(self, lease: Lease, seen: Sighting) -> Lease:
        if seen.started is None or lease.observed is Observed.RUNNING:
            return lease
        crash.point("agent.started.before_store")
        with self._store.transaction():
            lease = self._put(self._with_start(lease, seen))
            self._store.tell(event(EventKind.STARTED, lease))
        crash.point("agent.started.stored")
        return lease

    def _end(self, lease: Lease, seen: Sighting, end: Exit) -> Lease:
        crash.point("agent.ended.before_store")
        reason, detail = end.reason, end.detail
        if reason is EndReason.COMMAND_NOT_FOUND:
            command = ProcessSpec.model_validate_json(lease.process or "").argv[0]
            detail = f"{command}: {detail}"
        if lease.stop_reason == EndReason.NODE_STOPPED:
            if reason is EndReason.STOPPED:
                reason = EndReason.NODE_STOPPED
            elif reason is EndReason.NEVER_STARTED:
                detail = "the node was stopped before the process began"
        with self._store.transaction():
            begun = self._with_start(lease, seen)
            if begun.observed is not lease.observed:
                self._store.tell(event(EventKind.STARTED, begun))
            ended = self._put(
                replace(
                    begun,
                    observed=Observed.ENDED,
                    ended_wall_ns=end.wall_ns,
                    ended_mono_ns=end.mono_ns,
                    exit_code=end.code,
                    exit_signal=end.signal,
                    end_reason=reason,
                    detail=detail,
                )
            )
            self._store.tell(event(EventKind.ENDED, ended))
        crash.point("agent.ended.stored")
        self._starts.pop(lease.lease_id, None)
        self._tidier.submit(self._runtime.tidy, lease.lease_id)
        return ended

    def _lose(self, lease: Lease, seen: Sighting) -> Lease:
        """The supervisor died without a last record; the end is told when nothing is left."""
        if not self._runtime.kill_leftovers(lease.lease_id, lease.uid):
            return lease
        same_boot = lease.boot_id == clock.boot_id()
        detail = (
            "the supervisor was killed; the end is when this was noticed"
            if same_boot
            else "the node was restarted; the end is when the agent was back"
        )
        log.error("lease.supervisor_lost", lease_id=lease.lease_id, same_boot=same_boot)
        end = Exit(
            EndReason.SUPERVISOR_LOST,
            clock.wall_ns(),
            mono_ns=None,
            detail=detail,
        )
        return self._end(lease, seen, end)

    def _look_around(self) -> None:
        self._scans += 1
        everything = self._scans % FULL_SCAN_EVERY == 0
        self.settle_all(
            lease.lease_id
            for lease in self._store.active()
            if everything
            or lease.observed is Observed.ACCEPTED
            or not self.watcher.watching(lease.lease_id)
        )
        if time.monotonic() - self._forgotten_at > FORGET_EVERY_S:
            self._forgotten_at = time.monotonic()
            self.forget_before(clock.wall_ns() - RETENTION_S * 10**9)

    def settle_all(self, lease_ids: Iterable[str]) -> None:
        for lease_id in lease_ids:
            self.settle(lease_id)

    def forget_before(self, wall_ns: int) -> None:
        """Forgets leases that have been over since then, with their logs."""
        for lease_id in self._store.forget_before(wall_ns):
            with self._lock(lease_id):
                if self._store.lease(lease_id) is None:
                    self._runtime.forget(lease_id)

    # -- the agent's own life --------------------------------------------------------------------

    def resume(self) -> None:
        """Adopts what an earlier agent left: processes, records not read, starts not made."""
        active = self._store.active()
        kept = {lease.lease_id for lease in active}
        for name in self._runtime.work_folders():
            if name not in kept:
                self._tidier.submit(self._runtime.tidy, name)
        self.settle_all(sorted(kept))
        self.watcher.start()

    def stop_jobs(self) -> None:
        """Ends every job with `node_stopped` and waits until none is left; takes no new order.

        A node that stops has no time for long graces: they are cut to `NODE_STOP_GRACE_S`.
        """
        self._stopping = True
        begun = time.monotonic()
        while active := self._store.active():
            waited_s = time.monotonic() - begun
            if waited_s > NODE_STOP_GRACE_S + NODE_STOP_SLACK_S:
                log.error("node.jobs_left", leases=[lease.lease_id for lease in active])
                return
            for lease in active:
                self._stop_for_node(lease.lease_id, at_once=waited_s > NODE_STOP_GRACE_S)
            self._store.wait_for_news(0.2)

    def _stop_for_node(self, lease_id: str, *, at_once: bool) -> None:
        with self._lock(lease_id):
            lease = self._store.lease(lease_id)
            if lease is None or not lease.active:
                return
            if lease.stop_reason is None:
                lease = self._put(replace(lease, stop_reason=EndReason.NODE_STOPPED))
                self._runtime.stop(lease.lease_id)
            elif at_once:
                self._runtime.stop(lease.lease_id, at_once=True)
            self._settle_locked(lease)

    def close(self) -> None:
        """Stops watching; jobs that still run live on."""
        self._stopping = True
        self.watcher.stop()
        self._tidier.shutdown(wait=True)

    # -- reading ---------------------------------------------------------------------------------

    def report(self, lease_id: str) -> LeaseReport:
        """Raises `Refused` for a lease that is not known."""
        return report(self._known(lease_id))

    def snapshot(self) -> tuple[int, list[LeaseReport]]:
        """Number of the last event and every lease, of one instant."""
        last_seq, leases = self._store.snapshot()
        return last_seq, [report(lease) for lease in leases]

    def _known(self, lease_id: str) -> Lease:
        lease = self._store.lease(lease_id) if rules.is_lease_id(lease_id) else None
        if lease is None:
            raise Refused(404, "agent.lease_unknown", f"this node knows no lease {lease_id}")
        return lease

    def read_log(
        self, lease_id: str, *, offset: int, limit: int, wait_ms: int
    ) -> tuple[bytes, int, bool]:
        """Output from an offset, its size so far, and whether no byte will follow these.

        Waits up to ``wait_ms`` for the first byte while the lease is active.
        """
        deadline = time.monotonic() + wait_ms / 1000
        while True:
            over = not self._known(lease_id).active
            text, size = self._runtime.read_log(lease_id, offset, limit)
            left = deadline - time.monotonic()
            if text or over or left <= 0 or self._stopping:
                return text, size, over and offset + len(text) >= size
            self._store.wait_for_news(min(left, _LOG_POLL_S))


def _stored_refusal(lease: Lease) -> Refused:
    problem = Problem.model_validate_json(lease.problem or "")
    return Refused(
        problem.status,
        problem.code,
        problem.detail,
        field=problem.field,
        hint=problem.hint,
    )
