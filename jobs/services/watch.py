"""Watching nodes: a thread for each one reads its event log by long polls.

Events make the portal quick; `reconcile_node`, which every watch runs at its start and then at an
interval, makes it right.
"""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import structlog
from django.db import close_old_connections

from jobs.engines.base import Engine, EngineError, EngineTransient, NodeTarget
from jobs.services.ingest import Cursor, ingest
from jobs.services.reconcile import reconcile_node
from portal.config import config
from portal.core import crash, hints
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.core.row_leases import SoleRight
from portal.fleet import services as fleet
from portal.fleet.selectors import node_ids, node_target

_log = structlog.get_logger(__name__)
LONG_POLL_MS = 10_000
FIRST_PAUSE_S = 0.1
LAST_PAUSE_S = 2.0
END_TIMEOUT_S = 4.0
LEASE_NAME = "watch"
LEASE_TTL = timedelta(seconds=10)
LONGEST_REST_S = 0.1
NOTED_EVERY = timedelta(seconds=1)


class NodeWatch(threading.Thread):
    """Follows one node until ``stop`` is set."""

    def __init__(self, engine: Engine, node_id: str, stop: threading.Event) -> None:
        super().__init__(name=f"watch-{node_id}", daemon=True)
        self._engine = engine
        self._node_id = node_id
        self._stopped = stop
        self._reconcile_after = utc_now()

    def run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stopped.is_set():
            try:
                self._step()
                pause_s = FIRST_PAUSE_S
            except EngineTransient as error:
                self._silent(error)
                self._reconcile_after = utc_now()
                self._stopped.wait(pause_s)
                pause_s = min(2 * pause_s, LAST_PAUSE_S)
            except (PortalError, EngineError) as error:
                _log.warning("watch.retry", node_id=self._node_id, error=str(error))
                self._stopped.wait(pause_s)
            except Exception:  # noqa: BLE001 - a bug in one event may not end the watch
                _log.exception("watch.failed", node_id=self._node_id)
                self._stopped.wait(LAST_PAUSE_S)
            finally:
                close_old_connections()

    def _step(self) -> None:
        node = node_target(self._node_id)
        target = NodeTarget(node.id, node.address)
        if utc_now() >= self._reconcile_after:
            self._reconcile(target)
            node = node_target(self._node_id)
        wait_ms = min(LONG_POLL_MS, int(config.reconcile_interval_s * 1000))
        batch = self._engine.events(target, after=node.event_cursor, wait_ms=wait_ms)
        crash.point("watch.events_read")
        now = utc_now()
        if batch.stream_id != node.stream_id:
            self._reconcile_after = now
            return
        for event in batch.events:
            if event.gpu is not None:
                fleet.record_gpu_health(node_id=node.id, gpu=event.gpu, now=now)
        began = time.monotonic()
        if batch.events:
            ingest(
                [event.lease for event in batch.events if event.lease is not None],
                actor=f"node {node.name}",
                now=now,
                cursor=Cursor(node.id, batch.stream_id, batch.next_after),
            )
        # Last: whatever ended before this contact is known here.
        if not node.ready or node.last_seen_at is None or now - node.last_seen_at > NOTED_EVERY:
            fleet.record_contact(node_id=node.id, now=now)
        # Under load events come in larger batches, which cost less each.
        self._stopped.wait(min(time.monotonic() - began, LONGEST_REST_S))

    def _reconcile(self, target: NodeTarget) -> None:
        """First what is on the node is settled against its old record, then the new one counts."""
        inventory = self._engine.inventory(target)
        now = utc_now()
        reconcile_node(self._engine, target, now=now)
        fleet.record_inventory(node_id=target.node_id, inventory=inventory, now=now)
        crash.point("inventory.recorded")
        fleet.record_samples(node_id=target.node_id, samples=self._engine.samples(target), now=now)
        self._reconcile_after = now + timedelta(seconds=config.reconcile_interval_s)
        hints.give_on_commit(hints.Hint.SCHEDULE)

    def _silent(self, error: EngineTransient) -> None:
        node = node_target(self._node_id)
        since = node.last_seen_at or node.created_at
        if utc_now() - since < timedelta(seconds=config.unreachable_after_s):
            return
        if fleet.mark_unreachable(node_id=self._node_id, now=utc_now()):
            _log.warning("watch.node_unreachable", node_id=self._node_id, error=str(error))


def watch_nodes(engine: Engine, stop: threading.Event) -> None:
    """Keep a watch on every node that is enrolled, new ones included, until ``stop`` is set."""
    watches: dict[str, NodeWatch] = {}
    while not stop.is_set():
        try:
            for node_id in node_ids():
                if node_id not in watches:
                    watches[node_id] = NodeWatch(engine, node_id, stop)
                    watches[node_id].start()
        except Exception:  # noqa: BLE001 - a lost database may not end the loop
            _log.exception("watch.nodes_unread")
        finally:
            close_old_connections()
        hints.wait(hints.Hint.WATCH, timeout_s=1.0)
    deadline = time.monotonic() + END_TIMEOUT_S
    for watch in watches.values():
        watch.join(timeout=max(0.0, deadline - time.monotonic()))


def watch_in_turn(engine: Engine, owner: str, stop: threading.Event) -> None:
    """Watch while this process has the row lease; of several watchers the others stand by.

    Two that overlap for a moment do no harm: what a node says may be taken in twice.
    """
    right = SoleRight(LEASE_NAME, owner, LEASE_TTL)
    mine = _Watching(engine)
    while not stop.is_set():
        try:
            mine.set(right.held(utc_now()))
        except Exception:  # noqa: BLE001 - a lost database may not end the loop
            _log.exception("watch.right_unknown")
            mine.set(False)
        finally:
            close_old_connections()
        stop.wait(1.0)
    mine.set(False)
    right.give_back()


class _Watching:
    """A thread of `watch_nodes` that is there or not."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def set(self, wanted: bool) -> None:
        if wanted and self._thread is None:
            _log.info("watch.taken_over")
            self._ended = threading.Event()
            self._thread = threading.Thread(
                target=watch_nodes, args=(self._engine, self._ended), name="watcher", daemon=True
            )
            self._thread.start()
        elif not wanted and self._thread is not None:
            _log.info("watch.given_up")
            self._ended.set()
            self._thread.join(timeout=END_TIMEOUT_S)
            self._thread = None
