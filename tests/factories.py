"""A portal with one project, one member and one node, whose agent is a fake engine."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from billing.domain.pricing import MILLISECOND, whole_ms
from billing.models import Segment
from billing.services.prices import publish_price
from jobs.engines.base import NodeTarget
from jobs.models import Attempt, Job
from jobs.services.cycle import run_cycle
from jobs.services.ingest import Cursor, ingest
from jobs.services.reconcile import reconcile_node
from jobs.services.submit import JobRequest, submit_job
from jobs.services.tell import tell_lease
from portal.config import config
from portal.core import outbox
from portal.core.audit import SYSTEM
from portal.core.models import OutboxMessage
from portal.fleet.models import Lease
from portal.fleet.selectors import lease_view, node_target, proof_of_counters
from portal.fleet.services import record_contact, record_inventory
from quotas.models import Hold
from quotas.selectors import proof_of_holds
from quotas.services.limits import set_limit
from tests.builders import NOW, node, place, user
from tests.fakes.engine import FakeEngine


class Desk:
    """What the tests of the life cycle act on; ``now`` is everybody's clock."""

    def __init__(self, engine: FakeEngine | None = None) -> None:
        self.engine: Any = engine or FakeEngine()
        self.place = place()
        self.member = user("ada", role="member", project_id=self.place.project)
        self.node_id = node("node-1", *self.engine.gpus)
        publish_price(
            actor=SYSTEM,
            effective_from=NOW - timedelta(days=30),
            currency=config.currency,
            rates={"*": 3_600_000},
            now=NOW - timedelta(days=30),
        )

    @property
    def now(self):
        return self.engine.now

    @property
    def target(self):
        return NodeTarget(self.node_id, "https://127.0.0.1:1")

    def passes(self, **time):
        self.engine.now += timedelta(**time)

    def limit(self, owner_id=None, *, milli=None, queued=None):
        set_limit(
            actor=SYSTEM,
            owner_id=owner_id or self.place.project,
            limit_milli=milli,
            queued_limit=queued,
            now=self.now,
        )

    def submit(self, command=("train",), **request):
        return submit_job(
            principal=self.member,
            project="vision",
            request=JobRequest(command=tuple(command), **request),
            now=self.now,
        )

    def cycle(self):
        return run_cycle(self.now)

    def deliver(self):
        """Tell the node every lease that the outbox holds, as the workers do."""
        for message in OutboxMessage.objects.order_by("pk"):
            self.deliver_one(message)

    def deliver_one(self, message):
        tell_lease(self.engine, message.ref, now=self.now)
        outbox.done([message.pk])

    def listen(self):
        """Read the node's new events, as its watch does."""
        known = node_target(self.node_id)
        batch = self.engine.events(self.target, after=known.event_cursor, wait_ms=0)
        ingest(
            [event.lease for event in batch.events if event.lease],
            actor="node node-1",
            now=self.now,
            cursor=Cursor(self.node_id, batch.stream_id, batch.next_after),
        )
        record_contact(node_id=self.node_id, now=self.now)

    def reconcile(self):
        found = self.engine.inventory(self.target)
        reconcile_node(self.engine, self.target, now=self.now)
        record_inventory(node_id=self.node_id, inventory=found, now=self.now)

    def admitted(self, **request):
        """A job that has a lease of which the node has not been told."""
        job_id = self.submit(**request).id
        assert self.cycle() == 1
        return job_id

    def running(self, **request):
        job_id = self.admitted(**request)
        self.deliver()
        self.engine.begin(self.lease_of(job_id))
        self.listen()
        assert self.job(job_id).state == "RUNNING"
        return job_id

    def job(self, job_id):
        return Job.objects.get(pk=job_id)

    def attempts(self, job_id):
        return list(Attempt.objects.filter(job=job_id).order_by("number"))

    def lease_of(self, job_id):
        """The lease of the newest attempt."""
        return self.attempts(job_id)[-1].lease_id

    def lease(self, job_id):
        return lease_view(self.lease_of(job_id))

    def story(self, job_id):
        return [row.event for row in self.job(job_id).transitions.order_by("pk")]

    def metered_ms(self, job_id):
        return sum(Segment.objects.filter(job_id=job_id).values_list("duration_ms", flat=True))

    def assert_nothing_held(self):
        assert not Hold.objects.filter(released_at__isnull=True).exists()
        assert not Lease.objects.filter(released_at__isnull=True).exists()
        assert_sound()


def assert_sound():
    """What always holds, whatever happened; the numbers are those of design.md, section 10."""
    assert proof_of_counters() == []
    assert proof_of_holds() == []
    open_attempts = Attempt.objects.filter(ended_at__isnull=True)
    open_ids = set(open_attempts.values_list("pk", flat=True))
    assert open_ids == set(
        Hold.objects.filter(released_at__isnull=True).values_list("attempt_id", flat=True)
    )
    assert open_ids == set(
        Lease.objects.filter(released_at__isnull=True).values_list("attempt_id", flat=True)
    )
    active = Job.objects.filter(state__in=["STARTING", "RUNNING"]).values_list("pk", flat=True)
    assert sorted(active) == sorted(open_attempts.values_list("job_id", flat=True))
    for lease in Lease.objects.filter(released_at__isnull=False):
        pieces = Segment.objects.filter(lease_id=lease.pk).values_list("duration_ms", flat=True)
        assert sum(pieces) == observed_ms(lease.started_at, lease.ended_at)


def observed_ms(started_at, ended_at):
    if started_at is None:
        return 0
    return max(0, (whole_ms(ended_at) - whole_ms(started_at)) // MILLISECOND)
