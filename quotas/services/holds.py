"""Set quota aside for attempts and give it back, inside the caller's transaction.

Accounts are locked by id; one that does not exist yet begins without a limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from portal.accounts.selectors import owner_names, project_lines
from portal.core.errors import Rejected
from portal.core.locks import lock_rows
from portal.core.rows import shift_rows
from quotas.domain.accounts import Level, blocking_level
from quotas.models import Hold, QuotaAccount


@dataclass(frozen=True)
class NewHold:
    """Quota wanted for an attempt. ``owner_ids``: the tenants from the root, then the project."""

    attempt_id: str
    project_id: str
    owner_ids: tuple[str, ...]
    equivalent_milli: int


def hold_many(wanted: Sequence[NewHold], *, now: datetime) -> dict[str, Rejected]:
    """Hold quota for many attempts, first come first served; give the refusals by attempt.

    Whoever is refused holds nothing at any level. The number of queries does not grow with the
    batch.
    """
    levels = _lock_levels({owner for want in wanted for owner in want.owner_ids})
    lines = project_lines(want.project_id for want in wanted)
    taken: Counter[str] = Counter()
    granted: list[NewHold] = []
    blocked: dict[str, tuple[NewHold, Level]] = {}
    moved: dict[str, Rejected] = {}
    for want in wanted:
        if lines[want.project_id].owner_ids != want.owner_ids:
            moved[want.attempt_id] = _tree_changed()
            continue
        blocking = blocking_level(
            (levels[owner] for owner in want.owner_ids), want.equivalent_milli
        )
        if blocking is not None:
            blocked[want.attempt_id] = (want, blocking)
            continue
        granted.append(want)
        for owner in want.owner_ids:
            taken[owner] += want.equivalent_milli
            level = levels[owner]
            levels[owner] = replace(level, held_milli=level.held_milli + want.equivalent_milli)
    _add(taken)
    Hold.objects.bulk_create(
        Hold(
            attempt_id=want.attempt_id,
            project_id=want.project_id,
            owner_ids=list(want.owner_ids),
            equivalent_milli=want.equivalent_milli,
            held_at=now,
        )
        for want in granted
    )
    return moved | _refusals(blocked)


def lock_accounts_of(attempt_ids: Iterable[str]) -> None:
    """Lock every account that these attempts hold quota in, by id, before jobs are locked."""
    lines = Hold.objects.filter(attempt_id__in=list(attempt_ids)).values_list(
        "owner_ids", flat=True
    )
    lock_rows(QuotaAccount.objects.filter(pk__in={owner for line in lines for owner in line}))


def release_many(attempt_ids: Iterable[str], *, now: datetime) -> set[str]:
    """Give back what the attempts hold; those that held something until now.

    The caller has locked the accounts with `lock_accounts_of`. The number of queries does not grow
    with the batch.
    """
    ids = list(attempt_ids)
    held = lock_rows(Hold.objects.filter(attempt_id__in=ids, released_at__isnull=True))
    Hold.objects.filter(pk__in=[row.pk for row in held]).update(released_at=now)
    given_back: Counter[str] = Counter()
    for row in held:
        for owner in row.owner_ids:
            given_back[owner] -= row.equivalent_milli
    _add(given_back)
    return {row.attempt_id for row in held}


def _lock_levels(owner_ids: set[str]) -> dict[str, Level]:
    accounts = QuotaAccount.objects.filter(pk__in=owner_ids)
    rows = lock_rows(accounts)
    missing = owner_ids - {row.pk for row in rows}
    if missing:
        QuotaAccount.objects.bulk_create(
            (QuotaAccount(owner_id=owner) for owner in sorted(missing)), ignore_conflicts=True
        )
        rows = lock_rows(accounts)
    return {row.pk: Level(row.pk, row.limit_milli, row.held_milli) for row in rows}


def _add(taken: Counter[str]) -> None:
    shift_rows(QuotaAccount, ["held_milli"], {owner: [milli] for owner, milli in taken.items()})


def _refusals(blocked: dict[str, tuple[NewHold, Level]]) -> dict[str, Rejected]:
    if not blocked:
        return {}
    names = owner_names(level.owner_id for _, level in blocked.values())
    return {
        attempt_id: _limit_reached(level, want.equivalent_milli, names)
        for attempt_id, (want, level) in blocked.items()
    }


def _limit_reached(level: Level, equivalent_milli: int, names: dict[str, str]) -> Rejected:
    """Say which level refuses, with its numbers in GPUs."""
    who = names.get(level.owner_id, level.owner_id)
    limit = level.limit_milli or 0
    return Rejected(
        "quotas.limit_reached",
        f"The {who} may hold {_gpus(limit)} GPUs at once and holds {_gpus(level.held_milli)}; "
        f"this job needs {_gpus(equivalent_milli)}.",
        hint="Wait until other jobs end, ask for less, or have the limit raised.",
    )


def _tree_changed() -> Rejected:
    """With the accounts locked the tree cannot change any more; before, it did."""
    return Rejected(
        "quotas.tree_changed",
        "The project’s tenants were moved while the job was being placed.",
        hint="Nothing is to be done: it is placed again at once.",
    )


def _gpus(milli: int) -> str:
    return f"{milli // 1000}.{milli % 1000:03d}".rstrip("0").rstrip(".")
