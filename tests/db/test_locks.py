"""Rows are locked in one order, so that two who want the same rows never wait for each other."""

import pytest

from portal.core.ids import new_id
from portal.core.locks import guarded, lock_rows
from quotas.models import QuotaAccount


@pytest.mark.django_db
def test_rows_are_locked_by_id_whatever_order_was_asked_for():
    ids = [new_id() for _ in range(12)]
    QuotaAccount.objects.bulk_create(QuotaAccount(owner_id=owner) for owner in reversed(ids))

    with guarded():
        rows = lock_rows(QuotaAccount.objects.filter(pk__in=ids).order_by("-pk"))

    assert [row.pk for row in rows] == sorted(ids)


@pytest.mark.django_db(transaction=True)
def test_rows_are_not_locked_outside_a_transaction():
    with pytest.raises(RuntimeError, match="only inside guarded"):
        lock_rows(QuotaAccount.objects.all())
