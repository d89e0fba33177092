"""What the scheduler sees and what it answers. Frozen data, no IO."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from jobs.domain.states import Form
from jobs.scheduling.mig import Family
from jobs.scheduling.mig import Placement as MigPlacement


@dataclass(frozen=True)
class Request:
    """Resources of a job; see `jobs.models.Job` for what an absent size means."""

    compute_milli: int | None
    memory_mib: int | None
    form: Form = Form.ANY
    gpu_model: str = ""

    @property
    def wants_whole(self) -> bool:
        """A whole device; a share or an instance may be of everything too, by its form."""
        unsized = self.compute_milli is None and self.memory_mib is None
        return self.form is Form.WHOLE or (
            self.form is Form.ANY and (unsized or self.compute_milli == 1000)
        )


@dataclass(frozen=True)
class QueuedJob:
    job_id: str
    project_id: str
    owner_ids: tuple[str, ...]
    priority: int
    queued_at: datetime
    request: Request


@dataclass(frozen=True)
class GpuState:
    """One GPU as it is leased now. ``mode`` is ``whole``, ``share`` or ``mig``.

    ``in_maintenance``: in service, but its node takes no new leases, so that it is not usable.
    """

    gpu_id: str
    node_name: str
    index: int
    model: str
    memory_mib: int
    mode: str
    usable: bool
    compute_leased_milli: int = 0
    memory_leased_mib: int = 0
    family: Family | None = None
    instances: frozenset[MigPlacement] = frozenset()
    in_maintenance: bool = False


@dataclass(frozen=True)
class Level:
    """One quota account: its name for people, its limit (none: unlimited) and what it holds."""

    name: str
    limit_milli: int | None
    held_milli: int


@dataclass(frozen=True)
class ClusterView:
    gpus: tuple[GpuState, ...]
    queue: tuple[QueuedJob, ...]
    levels: Mapping[str, Level] = field(default_factory=dict)


@dataclass(frozen=True)
class Placed:
    """A slice for a job: what is promised, and its size in equivalents (see quotas).

    ``instance_size`` counts the units of the memory axis that a MIG instance covers.
    """

    job_id: str
    gpu_id: str
    kind: str
    memory_mib: int
    compute_milli: int
    equivalent_milli: int
    instance: MigPlacement | None = None
    instance_size: int | None = None


@dataclass(frozen=True)
class Waiting:
    """Why a job was not placed: a stable code and a sentence that a person can act on."""

    job_id: str
    code: str
    reason: str


@dataclass(frozen=True)
class Plan:
    placed: tuple[Placed, ...]
    waiting: tuple[Waiting, ...]
