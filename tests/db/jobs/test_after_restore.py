"""A restored portal asks its nodes before it acts."""

from jobs.services.after_restore import doubt_everything
from portal.core.models import OutboxMessage


def test_an_order_from_before_the_backup_is_not_sent_again(desk):
    job_id = desk.admitted()
    assert OutboxMessage.objects.exists()

    doubt_everything(now=desk.now)

    assert not OutboxMessage.objects.exists()
    assert desk.cycle() == 0
    assert desk.job(job_id).state == "STARTING"


def test_a_lease_that_ran_and_was_forgotten_since_the_backup_is_not_started_again(desk):
    job_id = desk.admitted()
    lease_id = desk.lease_of(job_id)

    doubt_everything(now=desk.now)
    desk.reconcile()

    assert lease_id not in desk.engine.living()
    assert desk.engine.world.get(lease_id) is None or desk.engine.world[lease_id].starts == 0
    assert [attempt.end_reason for attempt in desk.attempts(job_id)] == ["supervisor_lost"]
    desk.assert_nothing_held()


def test_the_end_of_a_lease_that_the_backup_knows_is_taken_in(desk):
    job_id = desk.admitted()
    lease_id = desk.lease_of(job_id)
    desk.deliver()
    desk.engine.begin(lease_id)
    doubt_everything(now=desk.now)
    desk.passes(seconds=30)
    desk.engine.end(lease_id, exit_code=0)

    desk.reconcile()

    assert desk.job(job_id).state == "SUCCEEDED"
    assert desk.metered_ms(job_id) == 30_000
