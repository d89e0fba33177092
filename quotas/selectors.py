"""Quotas as other rooms see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from quotas.domain.accounts import Level
from quotas.models import Hold, QuotaAccount


def levels_of(owner_ids: Iterable[str]) -> dict[str, Level]:
    """Give the accounts of tenants and projects; one that does not exist yet has no limit."""
    levels = {owner_id: Level(owner_id, None, 0) for owner_id in owner_ids}
    accounts = QuotaAccount.objects.filter(pk__in=levels)
    for pk, limit, held in accounts.values_list("pk", "limit_milli", "held_milli"):
        levels[pk] = Level(pk, limit, held)
    return levels


def queued_limit(project_id: str) -> int | None:
    """Give how many jobs of the project may wait at once; None is unlimited."""
    return QuotaAccount.objects.filter(pk=project_id).values_list("queued_limit", flat=True).first()


def held_by(attempt_ids: Iterable[str]) -> dict[str, int]:
    """Give what each attempt holds at the moment, in thousandths of a GPU."""
    return dict(
        Hold.objects.filter(attempt_id__in=set(attempt_ids), released_at__isnull=True).values_list(
            "attempt_id", "equivalent_milli"
        )
    )


def held_in_projects(project_ids: Iterable[str]) -> dict[str, int]:
    """Give what each attempt of these projects holds, in thousandths of a GPU, oldest first."""
    active = Hold.objects.filter(project_id__in=set(project_ids), released_at__isnull=True)
    return dict(active.order_by("held_at", "pk").values_list("attempt_id", "equivalent_milli"))


def proof_of_holds() -> list[str]:
    """Compare the accounts with the sums over their holds; a sentence per violation."""
    sums: Counter[str] = Counter()
    for owner_ids, equivalent in Hold.objects.filter(released_at__isnull=True).values_list(
        "owner_ids", "equivalent_milli"
    ):
        for owner_id in owner_ids:
            sums[owner_id] += equivalent
    accounts = dict(QuotaAccount.objects.values_list("owner_id", "held_milli"))
    return [
        f"account {owner_id} counts {accounts.get(owner_id, 0)} thousandths as held; "
        f"its holds sum to {sums[owner_id]}"
        for owner_id in sorted(accounts.keys() | sums.keys())
        if accounts.get(owner_id, 0) != sums[owner_id]
    ]
