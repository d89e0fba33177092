"""Refusals: what the portal is told when the agent does not do as asked."""

from __future__ import annotations

from agent.wire import Problem


class Refused(Exception):
    """A request that this agent refuses; ``problem`` says why and what would make it pass."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.problem = Problem(status=status, code=code, detail=detail, field=field, hint=hint)
