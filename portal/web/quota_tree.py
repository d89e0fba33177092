"""The tree of tenants and projects with their limits, as pages show it."""

from __future__ import annotations

from dataclasses import dataclass

from portal.accounts.access import Principal, accessible_project_ids
from portal.accounts.roles import Scope
from portal.accounts.selectors import owner_names, projects_of
from quotas.selectors import levels_of


@dataclass(frozen=True)
class QuotaLine:
    owner_id: str
    kind: str
    name: str
    depth: int
    limit_milli: int | None
    held_milli: int
    may_change: bool

    @property
    def left_milli(self) -> int | None:
        return None if self.limit_milli is None else max(0, self.limit_milli - self.held_milli)

    @property
    def used_permille(self) -> int:
        """For the bar; a limit of nothing is full."""
        if self.limit_milli is None:
            return 0
        return min(1000, self.held_milli * 1000 // self.limit_milli) if self.limit_milli else 1000


def quota_lines(principal: Principal) -> list[QuotaLine]:
    """Tenants above their projects, as deep as they lie in the tree."""
    projects = projects_of(principal)
    order: dict[str, int] = {}
    for project in sorted(projects, key=lambda one: (one.tenant_ids, one.slug)):
        for depth, owner_id in enumerate(project.owner_ids):
            order.setdefault(owner_id, depth)
    levels = levels_of(order)
    names = owner_names(order)
    changeable = accessible_project_ids(principal, need=Scope.TENANT_ADMIN)
    lines = []
    for owner_id, depth in order.items():
        kind, _, name = names[owner_id].partition(" ")
        level = levels[owner_id]
        lines.append(
            QuotaLine(
                owner_id=owner_id,
                kind=kind,
                name=name,
                depth=min(depth, 6),
                limit_milli=level.limit_milli,
                held_milli=level.held_milli,
                may_change=changeable is None or owner_id in changeable,
            )
        )
    return lines
