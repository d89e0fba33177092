"""The messages between the portal and a node agent (protocol version 1).

The portal calls the agent over HTTPS with mutual TLS; the agent never calls the portal, except once
to enrol. Every command is desired state: ``PUT /v1/leases/{lease_id}`` with a generation that only
grows. The agent stores the highest generation before it acts, refuses a lower one with 409 and
answers a repeated one with the same report.

| call | answer |
| --- | --- |
| ``GET /v1/inventory`` | `Inventory` |
| ``PUT /v1/leases/{lease_id}`` with `LeaseSpec` | `LeaseReport` (200), `Problem` (4xx) |
| ``GET /v1/leases`` | `LeaseList`: every lease that the agent has not forgotten |
| ``GET /v1/leases/{lease_id}`` | `LeaseReport` |
| ``GET /v1/leases/{lease_id}/log?offset=&limit=&wait_ms=`` | bytes; header `LOG_SIZE_HEADER` |
| ``GET /v1/events?after=&limit=&wait_ms=`` | `EventBatch`; waits until there is one to tell |
| ``GET /v1/samples`` | `SampleList`: the newest measurement of each GPU and running lease |
| ``GET /metrics`` | Prometheus text |

Readers are tolerant: unknown fields are ignored, so a newer peer may add some. Times are RFC 3339
UTC by the node's clock; ``monotonic_ns`` counts from the boot named by ``boot_id``. Sizes are MiB
and thousandths of a GPU's compute. A value that is not known is absent (``None``), never 0.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

PROTOCOL_VERSION = 1
PORTAL_URI = "urn:gpucommons:portal"
NODE_URI_PREFIX = "urn:gpucommons:node:"
LOG_SIZE_HEADER = "X-Log-Size"
LOG_FINAL_HEADER = "X-Log-Final"
MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_FILES = 1000
MAX_FILES_BYTES = 1024 * 1024


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class SharingMode(StrEnum):
    WHOLE = "whole"
    SHARE = "share"
    MIG = "mig"


class SliceKind(StrEnum):
    WHOLE = "whole"
    SHARE = "share"
    MIG = "mig"


class Enforcement(StrEnum):
    """How hard a promise is kept, hardest first; ``none`` is said plainly."""

    HARDWARE = "hardware"
    DRIVER = "driver"
    COOPERATIVE = "cooperative"
    NONE = "none"


class MigProfile(Message):
    """A kind of MIG instance: where it may start on the memory axis and what it has."""

    name: str = Field(description="as NVIDIA names it on this model, such as 2g.35gb")
    compute_slices: int
    size: int = Field(description="units of the memory axis")
    starts: list[int]
    most: int = Field(description="instances of this kind on an empty GPU")
    memory_mib: int
    media: bool = Field(default=False, description="has the one set of media engines")


class MigGeometry(Message):
    """What a GPU in MIG mode can be cut into, as the driver reports it."""

    compute_slices: int
    memory_units: int
    profiles: list[MigProfile]


class GpuInfo(Message):
    uuid: str
    index: int
    model: str
    memory_mib: int = Field(description="NVML total less what the driver reserves")
    mode: SharingMode
    simulated: bool
    healthy: bool
    health_reason: str | None = None
    mig: MigGeometry | None = Field(default=None, description="only of a GPU in MIG mode")


class Inventory(Message):
    protocol_version: int = PROTOCOL_VERSION
    node_name: str
    agent_version: str
    boot_id: str
    stream_id: str = Field(description="names the agent's database; events count anew in another")
    at: datetime
    isolated: bool = Field(description="each job has its own user; false without root")
    gpus: list[GpuInfo]


class Desired(StrEnum):
    RUNNING = "running"
    ABSENT = "absent"


class Observed(StrEnum):
    """What the agent knows of a lease. ``ended`` and ``refused`` are final."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    ENDED = "ended"
    REFUSED = "refused"
    ABSENT = "absent"


class SliceSpec(Message):
    gpu_uuid: str
    kind: SliceKind
    memory_mib: int = Field(gt=0)
    compute_milli: int = Field(gt=0, le=1000)
    mig_profile: str | None = None
    mig_start: int | None = None


class FileSpec(Message):
    """A file for the work folder, by a relative path without ``..``; owned by the job's user."""

    path: str
    content_base64: str
    mode: int = Field(default=0o644, ge=0, le=0o777)


class ProcessSpec(Message):
    argv: list[str] = Field(min_length=1)
    env: dict[str, str] = Field(default_factory=dict)
    time_limit_s: int | None = Field(default=None, gt=0)
    stop_grace_s: int = Field(default=10, ge=0, le=600)
    files: list[FileSpec] = Field(
        default_factory=list,
        exclude_if=lambda files: not files,
        description="at most 1 MiB together; without any an order reads as it did before them",
    )


class LeaseSpec(Message):
    """Desired state of one lease. ``absent`` needs neither slice nor process."""

    protocol_version: int = PROTOCOL_VERSION
    lease_id: str
    generation: int = Field(ge=1)
    desired: Desired
    slice: SliceSpec | None = None
    process: ProcessSpec | None = None
    labels: dict[str, str] = Field(default_factory=dict, description="job, project: for people")
    stream_id: str | None = Field(
        default=None, description="the record that a start is meant for; another one refuses it"
    )


class EndReason(StrEnum):
    EXITED = "exited"
    SIGNALLED = "signalled"
    TIME_LIMIT = "time_limit"
    STOPPED = "stopped"
    COMMAND_NOT_FOUND = "command_not_found"
    START_FAILED = "start_failed"
    NODE_STOPPED = "node_stopped"
    SUPERVISOR_LOST = "supervisor_lost"
    NEVER_STARTED = "never_started"


class LeaseReport(Message):
    """``started_at``/``ended_at`` are read by the supervisor around the job's own process.

    A lease stopped before its process began is ``ended`` with ``never_started`` and no
    ``started_at``.
    """

    lease_id: str
    generation: int
    desired: Desired
    observed: Observed
    pid: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration_ns: int | None = Field(default=None, description="monotonic, started to ended")
    exit_code: int | None = None
    exit_signal: int | None = None
    end_reason: EndReason | None = None
    detail: str | None = Field(default=None, description="a sentence a person can act on")
    enforcement_memory: Enforcement | None = None
    enforcement_compute: Enforcement | None = None
    gpu_uuid: str | None = None


class LeaseList(Message):
    boot_id: str
    stream_id: str
    next_event: int = Field(description="sequence number of the next event to be written")
    leases: list[LeaseReport]


class EventKind(StrEnum):
    STARTED = "started"
    ENDED = "ended"
    REFUSED = "refused"
    GPU_HEALTH = "gpu_health"


class Event(Message):
    seq: int
    kind: EventKind
    at: datetime
    boot_id: str
    monotonic_ns: int
    lease: LeaseReport | None = None
    gpu: GpuInfo | None = None


class EventBatch(Message):
    """Events with ``seq`` greater than ``after``, in order; ``next_after`` is the next cursor."""

    stream_id: str
    boot_id: str
    events: list[Event]
    next_after: int


class GpuSample(Message):
    uuid: str
    at: datetime
    utilisation_percent: float | None = None
    memory_used_mib: int | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None


class LeaseSample(Message):
    lease_id: str
    at: datetime
    utilisation_percent: float | None = None
    memory_used_mib: int | None = None
    memory_peak_mib: int | None = None


class SampleList(Message):
    gpus: list[GpuSample]
    leases: list[LeaseSample]


class Problem(Message):
    """RFC 9457 problem details as the agent gives them."""

    type: Literal["about:blank"] = "about:blank"
    status: int
    code: str
    detail: str
    field: str | None = None
    hint: str | None = None


class EnrolmentRequest(Message):
    """Sent once by a new node to the portal's ``POST /api/v1/nodes/enrol``; PEM texts."""

    code: str
    node_name: str
    address: str = Field(description="https://host:port where the portal reaches the agent")
    csr_pem: str


class EnrolmentAnswer(Message):
    node_id: str
    certificate_pem: str
    ca_pem: str
