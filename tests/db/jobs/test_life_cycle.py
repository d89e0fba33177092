"""From admission to the end: cancel, ingest, settle, reconcile, whatever order and how often."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agent.wire import Desired, EndReason, LeaseReport, Observed
from billing.models import Segment
from jobs.engines.base import EngineTransient
from jobs.models import Attempt, Job
from jobs.services.cancel import cancel_array, cancel_job
from jobs.services.cycle import run_cycle
from jobs.services.ingest import ingest
from jobs.services.logs import read_log
from jobs.services.metering import meter_running
from jobs.services.reconcile import declare_node_lost
from portal.core import outbox
from portal.core.audit import SYSTEM
from portal.core.errors import NotFound, Unavailable
from portal.core.models import OutboxMessage
from portal.fleet.models import Lease
from portal.fleet.services import mark_unreachable
from quotas.models import Hold
from tests.builders import NOW, gpu_info, user
from tests.factories import Desk, assert_sound
from tests.fakes.engine import (
    AnswersStale,
    DuplicatesEvents,
    FakeEngine,
    LosesItsRecord,
    RefusesLeases,
    ReordersReports,
    SlowToAnswer,
    Unreachable,
)
from tests.racing import race


def cancel(desk, job_id):
    return cancel_job(principal=desk.member, job_id=job_id, now=desk.now)


def finish(desk, job_id, reason=EndReason.EXITED, **facts):
    desk.engine.end(desk.lease_of(job_id), reason, **facts)
    desk.listen()


# ---- cycle ----------------------------------------------------------------------------------


def test_of_64_submissions_into_room_for_10_54_wait_and_say_why(transactional_db):
    desk = Desk()
    desk.submit(array_size=64, compute_milli=100, memory_mib=1000)
    assert desk.cycle() == 10
    assert desk.cycle() == 0
    assert Job.objects.filter(state="STARTING").count() == 10
    waiting = Job.objects.filter(state="QUEUED")
    assert waiting.filter(wait_code="jobs.no_gpu_free").exclude(wait_reason="").count() == 54
    assert OutboxMessage.objects.count() == 10
    assert_sound()


def test_racing_cycles_admit_no_more_than_one_would(desk):
    desk.submit(array_size=64, compute_milli=100, memory_mib=1000)
    admitted = race(*[desk.cycle] * 4)
    assert sum(admitted) + desk.cycle() == 10
    assert Attempt.objects.count() == 10
    assert Job.objects.filter(state="QUEUED").exclude(wait_code="").count() == 54
    assert_sound()


def test_racing_cycles_stay_within_a_limit(desk):
    desk.limit(desk.place.acme, milli=300)
    desk.submit(array_size=20, compute_milli=100, memory_mib=1000)
    admitted = race(*[desk.cycle] * 4)
    assert sum(admitted) + desk.cycle() == 3
    waiting = Job.objects.filter(state="QUEUED")
    assert waiting.filter(wait_code="quotas.limit_reached").count() == 17
    assert_sound()


def test_a_cycle_and_a_cancellation_agree(desk):
    job_ids = desk.submit(array_size=6, compute_milli=100, memory_mib=1000).job_ids
    race(desk.cycle, *[lambda job_id=job_id: cancel(desk, job_id) for job_id in job_ids])
    desk.deliver()
    desk.listen()
    assert set(Job.objects.values_list("state", flat=True)) == {"CANCELLED"}
    desk.assert_nothing_held()


# ---- cancel ---------------------------------------------------------------------------------


def test_a_waiting_job_is_cancelled_at_once(desk):
    job_id = desk.submit().id
    cancel(desk, job_id)
    job = desk.job(job_id)
    assert (job.state, job.reason_code) == ("CANCELLED", "cancelled")
    assert desk.cycle() == 0


def test_a_job_that_was_never_told_is_cancelled_on_its_node(desk):
    job_id = desk.admitted()
    cancel(desk, job_id)
    assert (desk.job(job_id).state, desk.job(job_id).wish) == ("STARTING", "cancel")
    desk.deliver()
    assert desk.job(job_id).state == "CANCELLED"
    assert {spec.desired for spec in desk.engine.specs} == {Desired.ABSENT}
    assert desk.metered_ms(job_id) == 0
    desk.assert_nothing_held()


def test_a_running_job_is_cancelled_when_its_node_has_stopped_it(desk):
    job_id = desk.running()
    desk.engine.stops_at_once = False
    desk.passes(seconds=7)
    cancel(desk, job_id)
    desk.deliver()
    assert desk.job(job_id).state == "RUNNING"
    desk.passes(seconds=3)
    desk.engine.stop(desk.lease_of(job_id))
    desk.listen()
    assert desk.job(job_id).state == "CANCELLED"
    assert desk.metered_ms(job_id) == 10_000
    desk.assert_nothing_held()


def test_a_program_that_ended_by_itself_in_time_is_judged_by_its_code(desk):
    job_id = desk.running()
    desk.engine.end(desk.lease_of(job_id), exit_code=0)
    cancel(desk, job_id)
    desk.deliver()
    assert desk.job(job_id).state == "SUCCEEDED"


def test_cancelling_twice_or_after_the_end_changes_nothing(desk):
    job_id = desk.running()
    cancel(desk, job_id)
    cancel(desk, job_id)
    assert desk.lease(job_id).generation == 2
    assert OutboxMessage.objects.count() == 1
    desk.deliver()
    before = desk.story(job_id)
    cancel(desk, job_id)
    assert desk.story(job_id) == before == ["submitted", "admitted", "started", "cancelled"]


def test_an_array_is_cancelled_in_every_state(desk):
    array_id = desk.submit(array_size=4, compute_milli=400, memory_mib=10).id
    desk.cycle()
    desk.deliver()
    desk.engine.begin(desk.engine.living(Observed.ACCEPTED)[0])
    desk.listen()
    cancel_array(principal=desk.member, array_id=array_id, now=desk.now)
    desk.deliver()
    assert set(Job.objects.values_list("state", flat=True)) == {"CANCELLED"}
    desk.assert_nothing_held()


def test_what_is_not_yours_does_not_exist(desk):
    job_id = desk.submit().id
    desk.member = user("eve")
    with pytest.raises(NotFound, match=r"jobs\.not_found"):
        cancel(desk, job_id)


# ---- ingest and settlement ------------------------------------------------------------------


def test_a_run_is_told_metered_and_given_back(desk):
    job_id = desk.running(compute_milli=250, memory_mib=1000)
    desk.passes(seconds=90, milliseconds=250)
    finish(desk, job_id, exit_code=0)
    job, attempt = desk.job(job_id), desk.attempts(job_id)[0]
    assert (job.state, job.exit_code, job.ended_at) == ("SUCCEEDED", 0, desk.now)
    assert (attempt.started_at, attempt.end_reason) == (NOW, "exited")
    assert desk.story(job_id) == ["submitted", "admitted", "started", "succeeded"]
    assert desk.metered_ms(job_id) == 90_250
    desk.assert_nothing_held()


@pytest.mark.parametrize("engine", [DuplicatesEvents, ReordersReports])
def test_events_twice_or_backwards_are_one_run(transactional_db, engine):
    desk = Desk(engine())
    job_id = desk.admitted()
    desk.deliver()
    desk.engine.begin(desk.lease_of(job_id))
    desk.passes(seconds=5)
    finish(desk, job_id, exit_code=3)
    desk.listen()
    desk.listen()
    assert desk.job(job_id).state == "FAILED"
    assert desk.story(job_id) == ["submitted", "admitted", "started", "failed"]
    assert desk.metered_ms(job_id) == 5_000
    desk.assert_nothing_held()


def test_the_end_alone_tells_the_start_too(desk):
    job_id = desk.admitted()
    desk.deliver()
    lease_id = desk.lease_of(job_id)
    desk.engine.begin(lease_id)
    desk.passes(seconds=5)
    desk.engine.end(lease_id, exit_code=0)
    newest = desk.engine.node(desk.node_id).leases[lease_id]
    ingest([newest], actor="node", now=desk.now)
    assert desk.story(job_id) == ["submitted", "admitted", "started", "succeeded"]
    assert desk.metered_ms(job_id) == 5_000


def test_a_late_start_of_an_ended_run_changes_nothing(desk):
    job_id = desk.running()
    started = desk.engine.node(desk.node_id).leases[desk.lease_of(job_id)]
    desk.passes(seconds=5)
    finish(desk, job_id, exit_code=0)
    ingest([started], actor="node", now=desk.now)
    assert desk.job(job_id).state == "SUCCEEDED"
    desk.assert_nothing_held()


def test_racing_reports_of_one_end_settle_it_once(desk):
    job_id = desk.running()
    desk.passes(seconds=5)
    desk.engine.end(desk.lease_of(job_id), exit_code=0)
    race(*[desk.listen] * 4, *[desk.reconcile] * 2)
    assert desk.story(job_id) == ["submitted", "admitted", "started", "succeeded"]
    assert Segment.objects.count() == Hold.objects.count() == Lease.objects.count() == 1
    assert desk.metered_ms(job_id) == 5_000
    desk.assert_nothing_held()


def test_reports_of_strangers_are_left_aside(desk):
    ingest(
        [
            LeaseReport(
                lease_id="of-nobody",
                generation=1,
                desired=Desired.RUNNING,
                observed=Observed.RUNNING,
                started_at=NOW,
            )
        ],
        actor="node",
        now=NOW,
    )
    assert_sound()


def test_a_stop_of_the_node_queues_the_job_again_and_uses_no_attempt(desk):
    job_id = desk.running(max_attempts=1)
    desk.passes(seconds=5)
    finish(desk, job_id, EndReason.NODE_STOPPED)
    assert desk.job(job_id).state == "QUEUED"
    assert desk.job(job_id).started_at is None
    assert desk.cycle() == 1
    first, second = desk.attempts(job_id)
    assert (first.end_reason, second.number, second.ended_at) == ("node_stopped", 2, None)
    assert first.lease_id != second.lease_id
    desk.deliver()
    desk.engine.begin(second.lease_id)
    desk.passes(seconds=7)
    finish(desk, job_id, exit_code=0)
    assert desk.metered_ms(job_id) == 12_000
    desk.assert_nothing_held()


def test_free_ends_before_do_not_count_when_attempts_run_out(desk):
    job_id = desk.running(max_attempts=2)
    for reason in (EndReason.NODE_STOPPED, EndReason.SUPERVISOR_LOST, EndReason.NODE_STOPPED):
        finish(desk, job_id, reason)
        assert desk.job(job_id).state == "QUEUED"
        desk.cycle()
        desk.deliver()
        desk.engine.begin(desk.lease_of(job_id))
        desk.listen()
    finish(desk, job_id, EndReason.SUPERVISOR_LOST)
    assert desk.job(job_id).state == "FAILED"
    assert [attempt.number for attempt in desk.attempts(job_id)] == [1, 2, 3, 4]


def test_a_lost_supervisor_uses_attempts(desk):
    job_id = desk.running(max_attempts=2)
    finish(desk, job_id, EndReason.SUPERVISOR_LOST)
    assert desk.job(job_id).state == "QUEUED"
    desk.cycle()
    desk.deliver()
    desk.engine.begin(desk.lease_of(job_id))
    finish(desk, job_id, EndReason.SUPERVISOR_LOST)
    assert (desk.job(job_id).state, desk.job(job_id).reason_code) == ("FAILED", "supervisor_lost")
    desk.assert_nothing_held()


def test_a_refused_lease_is_tried_as_often_as_allowed(transactional_db):
    desk = Desk(RefusesLeases())
    job_id = desk.admitted(max_attempts=2)
    desk.deliver()
    assert (desk.job(job_id).state, desk.job(job_id).reason_code) == ("QUEUED", "refused")
    desk.assert_nothing_held()
    desk.cycle()
    desk.deliver()
    assert desk.job(job_id).state == "FAILED"
    assert desk.job(job_id).reason == "GPU-0 is out of service: XID 79"
    assert [spec.desired for spec in desk.engine.specs] == [Desired.ABSENT] * 2
    desk.assert_nothing_held()


def test_a_lease_begins_after_the_end_that_made_room_for_it(desk):
    """The end is taken in after the cycle has begun and before it reads what is free."""
    first = desk.running(compute_milli=1000)
    second = desk.submit(compute_milli=1000).id
    begun = desk.now
    desk.passes(seconds=1)
    desk.engine.end(desk.lease_of(first), EndReason.EXITED, exit_code=0)
    desk.listen()
    desk.passes(seconds=1)
    assert run_cycle(begun, clock=lambda: desk.now) == 1
    assert desk.lease(second).created_at > desk.lease(first).released_at
    assert_sound()


# ---- telling --------------------------------------------------------------------------------


def test_an_answer_that_was_lost_is_asked_for_again(transactional_db):
    desk = Desk(SlowToAnswer())
    job_id = desk.admitted()
    with pytest.raises(EngineTransient):
        desk.deliver()
    assert OutboxMessage.objects.count() == 1
    assert outbox.send_due(desk.now + timedelta(seconds=6)) == 1
    desk.deliver()
    assert OutboxMessage.objects.count() == 0
    assert len({spec.model_dump_json() for spec in desk.engine.specs}) == 1
    assert desk.job(job_id).state == "STARTING"


def test_a_message_that_comes_again_later_orders_nothing(desk):
    job_id = desk.admitted()
    message = OutboxMessage.objects.get()
    desk.deliver_one(message)
    desk.engine.begin(desk.lease_of(job_id))
    desk.listen()
    orders = len(desk.engine.specs)
    desk.deliver_one(message)
    desk.engine.lose_record(desk.node_id)
    desk.deliver_one(message)
    assert len(desk.engine.specs) == orders
    desk.reconcile()
    desk.deliver_one(message)
    assert desk.engine.world[desk.attempts(job_id)[0].lease_id].starts == 1


def test_an_order_obeyed_in_a_record_that_is_lost_is_not_obeyed_again(transactional_db):
    desk = Desk(SlowToAnswer())
    job_id = desk.admitted()
    lease_id = desk.lease_of(job_id)
    with pytest.raises(EngineTransient):
        desk.deliver()
    desk.engine.begin(lease_id)
    desk.engine.lose_record(desk.node_id)
    desk.deliver()
    assert desk.engine.world[lease_id].starts == 1
    desk.reconcile()
    assert desk.job(job_id).state == "QUEUED"
    assert desk.engine.world[lease_id].starts == 1
    desk.assert_nothing_held()


# ---- reconcile ------------------------------------------------------------------------------


def test_a_lease_that_the_node_was_never_told_is_told_again(desk):
    job_id = desk.admitted()
    desk.reconcile()
    assert desk.engine.living(Observed.ACCEPTED) == [desk.lease_of(job_id)]
    assert_sound()


def test_a_wish_that_the_node_missed_is_told_again(desk):
    job_id = desk.running()
    cancel(desk, job_id)
    OutboxMessage.objects.all().delete()
    desk.reconcile()
    assert desk.job(job_id).state == "CANCELLED"
    desk.assert_nothing_held()


def test_another_record_never_starts_a_lease_again(desk):
    job_id = desk.running(max_attempts=2)
    lease_id = desk.lease_of(job_id)
    desk.passes(seconds=5)
    desk.listen()
    desk.engine.lose_record(desk.node_id)
    desk.passes(hours=3)
    desk.reconcile()
    assert desk.job(job_id).state == "QUEUED"
    assert desk.job(job_id).reason == "The node lost its record of the lease."
    assert desk.metered_ms(job_id) == 5_000
    told = [spec.desired for spec in desk.engine.specs if spec.lease_id == lease_id]
    assert told == [Desired.RUNNING, Desired.ABSENT]
    desk.assert_nothing_held()


def test_a_lease_lost_between_order_and_start_is_not_ordered_again(transactional_db):
    desk = Desk(LosesItsRecord())
    job_id = desk.admitted()
    desk.deliver()
    desk.reconcile()
    told = [spec.desired for spec in desk.engine.specs]
    assert told == [Desired.RUNNING, Desired.ABSENT]
    assert desk.job(job_id).state == "QUEUED"
    assert desk.metered_ms(job_id) == 0
    desk.assert_nothing_held()


def test_a_portal_that_died_before_it_noted_a_lost_run_still_bills_it(desk):
    job_id = desk.running()
    lease_id = desk.lease_of(job_id)
    desk.passes(seconds=5)
    desk.listen()
    desk.engine.lose_record(desk.node_id)
    absent = LeaseReport(
        lease_id=lease_id, generation=2, desired=Desired.ABSENT, observed=Observed.ABSENT
    )
    desk.engine.node(desk.node_id).leases[lease_id] = absent
    desk.reconcile()
    assert desk.attempts(job_id)[0].end_reason == "supervisor_lost"
    assert desk.metered_ms(job_id) == 5_000
    assert_sound()


def test_a_lease_that_arrives_while_it_is_given_up_is_freed_only_when_its_process_is_gone(desk):
    job_id = desk.admitted()
    desk.engine.stops_at_once = False
    listed = desk.engine.leases(desk.target)
    desk.deliver()
    lease_id = desk.lease_of(job_id)
    desk.engine.begin(lease_id)
    newest = desk.engine.leases
    desk.engine.leases = lambda node: listed.model_copy(update={"stream_id": "stream-2"})
    desk.reconcile()
    assert desk.lease(job_id).released_at is None
    desk.engine.leases = newest
    desk.passes(seconds=4)
    desk.engine.stop(lease_id)
    desk.reconcile()
    assert desk.metered_ms(job_id) == 4_000
    assert desk.engine.world[lease_id].starts == 1
    desk.assert_nothing_held()


def test_a_stranger_is_ended(desk):
    job_id = desk.running()
    lease_id = desk.lease_of(job_id)
    declare_node_lost(actor=SYSTEM, node_id=desk.node_id, now=desk.now)
    assert desk.engine.living(Observed.RUNNING) == [lease_id]
    desk.reconcile()
    assert desk.engine.living(Observed.RUNNING) == []
    assert desk.engine.specs[-1].desired is Desired.ABSENT
    desk.assert_nothing_held()


def test_a_stale_list_does_not_undo_an_end(transactional_db):
    desk = Desk(AnswersStale())
    job_id = desk.running()
    desk.reconcile()
    desk.passes(seconds=5)
    finish(desk, job_id, exit_code=0)
    desk.reconcile()
    desk.reconcile()
    assert desk.job(job_id).state == "SUCCEEDED"
    assert desk.metered_ms(job_id) == 5_000
    desk.assert_nothing_held()


# ---- nodes that do not answer ---------------------------------------------------------------


def test_a_silent_node_keeps_its_slices(transactional_db):
    desk = Desk(Unreachable())
    desk.engine.silent = False
    job_id = desk.running()
    desk.engine.silent = True
    mark_unreachable(node_id=desk.node_id, now=desk.now)
    with pytest.raises(EngineTransient):
        desk.reconcile()
    assert desk.job(job_id).state == "RUNNING"
    other = desk.submit(compute_milli=1, memory_mib=1).id
    assert desk.cycle() == 0
    assert desk.job(other).wait_code == "jobs.no_node"
    with pytest.raises(Unavailable, match=r"jobs\.node_unreachable"):
        read_log(desk.engine, principal=desk.member, job_id=job_id)


def test_a_lost_node_is_billed_until_it_was_last_seen(desk):
    job_id = desk.running(max_attempts=1)
    desk.passes(minutes=10)
    desk.listen()
    desk.passes(hours=5)
    meter_running(desk.now)
    assert declare_node_lost(actor=SYSTEM, node_id=desk.node_id, now=desk.now) == 1
    assert desk.metered_ms(job_id) == 600_000
    assert (desk.job(job_id).state, desk.attempts(job_id)[0].end_reason) == ("QUEUED", "node_lost")
    assert declare_node_lost(actor=SYSTEM, node_id=desk.node_id, now=desk.now) == 0
    desk.assert_nothing_held()


# ---- metering of running jobs ---------------------------------------------------------------


def test_full_hours_are_metered_while_the_job_runs(desk):
    job_id = desk.running()
    at_the_edge = timedelta(minutes=30)
    desk.passes(seconds=at_the_edge.total_seconds())
    desk.listen()
    meter_running(desk.now)
    assert desk.metered_ms(job_id) == 0
    desk.passes(minutes=3)
    desk.listen()
    meter_running(desk.now)
    meter_running(desk.now)
    assert desk.metered_ms(job_id) == 30 * 60_000
    desk.passes(minutes=60)
    desk.listen()
    race(*[lambda: meter_running(desk.now)] * 3)
    assert desk.metered_ms(job_id) == 90 * 60_000
    desk.passes(seconds=1)
    finish(desk, job_id, exit_code=0)
    assert desk.metered_ms(job_id) == 93 * 60_000 + 1000
    assert Segment.objects.count() == 3
    desk.assert_nothing_held()


def test_an_end_just_before_the_hour_that_is_told_after_it_is_billed_exactly(desk):
    job_id = desk.running()
    desk.passes(minutes=29, seconds=59)
    desk.engine.end(desk.lease_of(job_id), exit_code=0)
    desk.passes(seconds=2)
    meter_running(desk.now)
    desk.listen()
    assert desk.metered_ms(job_id) == (29 * 60 + 59) * 1000
    desk.assert_nothing_held()


def test_metering_races_with_the_end_of_a_job(desk):
    job_id = desk.running()
    desk.passes(minutes=40)
    desk.listen()
    desk.engine.end(desk.lease_of(job_id), exit_code=0)
    race(desk.listen, *[lambda: meter_running(desk.now)] * 3)
    assert desk.metered_ms(job_id) == 40 * 60_000
    desk.assert_nothing_held()


# ---- logs -----------------------------------------------------------------------------------


def test_a_log_is_read_from_the_node_of_its_attempt(desk):
    job_id = desk.running()
    desk.engine.logs[desk.lease_of(job_id)] = b"one\ntwo\n"
    read = {"principal": desk.member, "job_id": job_id}
    chunk = read_log(desk.engine, **read, offset=4, limit=2)
    assert (chunk.data, chunk.next_offset, chunk.final) == (b"tw", 6, False)
    finish(desk, job_id, exit_code=0)
    assert read_log(desk.engine, **read, offset=6).final
    assert read_log(desk.engine, **read, attempt=1).data == b"one\ntwo\n"
    for attempt in (0, 2):
        with pytest.raises(NotFound, match=r"jobs\.attempt_not_found"):
            read_log(desk.engine, **read, attempt=attempt)


def test_a_log_before_the_start_is_empty_and_goes_on(desk):
    job_id = desk.submit().id
    read = {"principal": desk.member, "job_id": job_id}
    assert not read_log(desk.engine, **read).final
    desk.cycle()
    assert not read_log(desk.engine, **read).final
    cancel(desk, job_id)
    desk.deliver()
    assert read_log(desk.engine, **read).final


def test_a_log_that_its_node_has_lost_is_gone(desk):
    job_id = desk.running()
    desk.engine.lose_record(desk.node_id)
    with pytest.raises(NotFound, match=r"jobs\.log_gone"):
        read_log(desk.engine, principal=desk.member, job_id=job_id)


def test_jobs_spread_over_gpus_without_excess(transactional_db):
    desk = Desk(FakeEngine(*[gpu_info(f"GPU-{n}", index=n) for n in range(3)]))
    desk.submit(array_size=9, compute_milli=500, memory_mib=10)
    assert desk.cycle() == 6
    assert_sound()
