"""The life cycle in random steps; after each one, what always holds is checked."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run

from agent.wire import EndReason, Observed
from jobs.domain.states import TERMINAL
from jobs.engines.base import EngineTransient
from jobs.models import Attempt, Job, Transition
from jobs.services.cancel import cancel_job
from jobs.services.ingest import ingest
from jobs.services.metering import meter_running
from jobs.services.reconcile import declare_node_lost
from jobs.services.tell import tell_lease
from portal.core.audit import SYSTEM
from portal.core.models import OutboxMessage
from portal.fleet.models import Lease
from portal.fleet.services import mark_unreachable
from tests.factories import Desk, assert_sound, observed_ms
from tests.fakes import engine as fakes
from tests.fakes.engine import SlowToAnswer

REASONS = [reason for reason in EndReason if reason is not EndReason.NEVER_STARTED]
PICK = st.integers(0, 10**6)


def pick(things, number):
    """One of the things, or none of no things."""
    return [things[number % len(things)]] if things else []


class LifeCycle(RuleBasedStateMachine):
    """Users, scheduler, workers, a watch and a node with a mind of its own."""

    def __init__(self):
        super().__init__()
        self.undo = transaction.atomic()
        self.undo.__enter__()
        self.desk = Desk(SlowToAnswer())
        self.desk.limit(self.desk.place.research, milli=800)
        self.engine = self.desk.engine
        self.engine.lost_answers = 0
        self.engine.stops_at_once = False
        self.past_messages = []
        self.past_reports = []
        self.noted = {}

    def teardown(self):
        transaction.set_rollback(True)
        self.undo.__exit__(None, None, None)

    # -- people ----------------------------------------------------------------------------------

    @rule(
        compute=st.sampled_from([100, 300, 500, 1000]),
        attempts=st.integers(1, 2),
        members=st.sampled_from([None, 3]),
    )
    def submit(self, compute, attempts, members):
        submitted = len(Job.objects.all())
        fits = submitted < 12 and compute <= 800
        for _ in range(fits):
            self.desk.submit(
                compute_milli=compute, memory_mib=10, max_attempts=attempts, array_size=members
            )

    @rule(attempts=st.integers(1, 2), command=st.sampled_from(["train", "serve"]))
    def a_job_comes_to_run(self, attempts, command):
        """The plain way at a stroke, so that the other steps meet running jobs."""
        for _ in range(Job.objects.count() < 12):
            self.desk.submit((command,), compute_milli=200, memory_mib=10, max_attempts=attempts)
        self.cycle()
        self.desk.deliver()
        for lease_id in self.engine.living(Observed.ACCEPTED):
            self.a_wanted_process_begins(lease_id)
        self.desk.listen()

    def a_wanted_process_begins(self, lease_id):
        for wanted_id in [lease_id] * (self.engine.report(lease_id).desired == "running"):
            self.engine.begin(wanted_id)
            self.remember(wanted_id)

    @rule(number=PICK)
    def cancel(self, number):
        for job in pick(list(Job.objects.order_by("number")), number):
            cancel_job(principal=self.desk.member, job_id=job.pk, now=self.desk.now)

    @rule()
    def declare_lost(self):
        declare_node_lost(actor=SYSTEM, node_id=self.desk.node_id, now=self.desk.now)

    # -- the portal ------------------------------------------------------------------------------

    @rule()
    def cycle(self):
        self.desk.cycle()
        self.past_messages += OutboxMessage.objects.values_list("ref", flat=True)

    @rule(number=PICK, answered=st.booleans())
    def deliver(self, number, answered):
        self.engine.lost_answers = 0 if answered else 1
        for message in pick(list(OutboxMessage.objects.order_by("pk")), number):
            try:
                self.desk.deliver_one(message)
            except EngineTransient:
                continue
        self.engine.lost_answers = 0

    @precondition(lambda self: self.past_messages)
    @rule(number=PICK)
    def deliver_an_old_one(self, number):
        for lease_id in pick(self.past_messages[-4:], number):
            tell_lease(self.engine, lease_id, now=self.desk.now)
            for ordered in set(self.engine.living(Observed.ACCEPTED)) & {lease_id}:
                self.a_wanted_process_begins(ordered)

    @rule()
    def listen(self):
        self.desk.listen()

    @rule()
    def reconcile(self):
        self.desk.reconcile()

    @rule(number=PICK)
    def an_old_report_comes_again(self, number):
        for report in pick(self.past_reports, number):
            ingest([report], actor="node", now=self.desk.now)

    @rule()
    def node_is_silent(self):
        mark_unreachable(node_id=self.desk.node_id, now=self.desk.now)

    @rule()
    def meter(self):
        meter_running(self.desk.now)

    @rule(seconds=st.sampled_from([1, 59, 1_800, 3_601]), milliseconds=st.integers(0, 999))
    def time_passes(self, seconds, milliseconds):
        self.engine.now += timedelta(seconds=seconds, milliseconds=milliseconds)

    # -- the node --------------------------------------------------------------------------------

    @rule(number=PICK)
    def a_process_begins(self, number):
        for lease_id in pick(self.engine.living(Observed.ACCEPTED), number):
            self.a_wanted_process_begins(lease_id)

    @rule(number=PICK, reason=st.sampled_from(REASONS), code=st.integers(0, 1))
    def a_process_ends(self, number, reason, code):
        for lease_id in pick(self.engine.living(Observed.RUNNING), number):
            self.engine.end(lease_id, reason, exit_code=code)
            self.remember(lease_id)

    @rule(number=PICK)
    def a_stop_is_done(self, number):
        for lease_id in pick(self.engine.living(Observed.ACCEPTED, Observed.RUNNING), number):
            unwanted = self.engine.report(lease_id).desired == "absent"
            for unwanted_id in [lease_id] * unwanted:
                self.engine.stop(unwanted_id)
                self.remember(unwanted_id)

    @rule(number=PICK, then=st.sampled_from(["", "deliver_an_old_one"]))
    def the_record_is_lost(self, number, then):
        self.engine.lose_record(self.desk.node_id)
        for _ in filter(None, [then]):
            self.deliver_an_old_one(number)

    def remember(self, lease_id):
        self.past_reports.append(self.engine.report(lease_id))

    # -- what always holds -----------------------------------------------------------------------

    @invariant()
    def counters_holds_and_meters_are_right(self):
        assert_sound()

    @invariant()
    def a_lease_starts_once(self):
        assert {run.starts for run in self.engine.world.values()} <= {1}

    @invariant()
    def a_job_has_at_most_one_process_at_a_time(self):
        jobs = dict(Attempt.objects.values_list("lease_id", "job_id"))
        alive = [
            jobs[lease_id]
            for lease_id, run in self.engine.world.items()
            if run.started_at and not run.ended_at and not self.given_up(lease_id)
        ]
        assert len(alive) == len(set(alive))

    def given_up(self, lease_id):
        """An operator has declared that it does not run any more."""
        return Attempt.objects.filter(lease_id=lease_id, end_reason="node_lost").exists()

    @invariant()
    def what_has_ended_stays_as_it_is(self):
        for job in Job.objects.filter(state__in=TERMINAL):
            facts = (job.state, job.ended_at, job.exit_code, self.desk.metered_ms(job.pk))
            assert self.noted.setdefault(job.pk, facts) == facts

    @invariant()
    def the_story_is_a_chain_that_ends_in_the_state(self):
        for job in Job.objects.all():
            rows = list(Transition.objects.filter(job=job).order_by("pk"))
            assert [row.to_state for row in rows[:-1]] == [row.from_state for row in rows[1:]]
            assert rows[-1].to_state == job.state

    @invariant()
    def what_is_metered_of_a_run_is_what_its_node_observed(self):
        for lease in Lease.objects.filter(released_at__isnull=False, started_at__isnull=False):
            attempt = Attempt.objects.get(lease_id=lease.pk)
            seen = self.engine.world[lease.pk]
            for _ in range(attempt.end_reason not in ("node_lost", "supervisor_lost")):
                assert observed_ms(seen.started_at, seen.ended_at) == observed_ms(
                    lease.started_at, lease.ended_at
                )


@pytest.fixture(autouse=True)
def _one_transaction_is_undone_after_each_run(db, monkeypatch):
    """Each run of the machine is rolled back, so the fake node is called inside of one."""
    monkeypatch.setattr(fakes, "assert_no_transaction", lambda: None)


def machine(**changes):
    return settings(
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        **changes,
    )


def test_the_life_cycle_holds_in_any_order():
    """Without shrinking, which would take longer than a test may."""
    run(
        LifeCycle,
        settings=machine(max_examples=25, stateful_step_count=25, phases=[Phase.generate]),
    )


@pytest.mark.soak
def test_the_life_cycle_holds_in_many_orders():
    run(
        LifeCycle,
        settings=machine(
            max_examples=100, stateful_step_count=50, phases=[Phase.generate, Phase.shrink]
        ),
    )
