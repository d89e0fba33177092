"""Builds what tests start from, through the services that the product uses."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from agent.wire import GpuInfo, Inventory, SharingMode, SliceKind
from portal.accounts.access import Principal
from portal.accounts.roles import Role
from portal.accounts.services import create_project, create_tenant, create_user, set_membership
from portal.core.audit import SYSTEM
from portal.core.ids import new_id
from portal.core.locks import guarded
from portal.fleet.models import Node, NodeState
from portal.fleet.selectors import fleet_view
from portal.fleet.services import NewLease, open_leases, record_inventory

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
GPU_MIB = 143_000
H200 = "NVIDIA H200"
PASSWORD = "a long enough word"


@dataclass(frozen=True)
class Place:
    """A project ``vision`` of tenant ``research`` below ``acme``."""

    acme: str
    research: str
    project: str

    @property
    def owner_ids(self):
        return (self.acme, self.research, self.project)


def place():
    tenant = partial(create_tenant, actor=SYSTEM, now=NOW)
    acme = tenant(name="Acme", slug="acme", parent_id=None)
    research = tenant(name="Research", slug="research", parent_id=acme)
    project = create_project(
        actor=SYSTEM, tenant_id=research, name="Vision", slug="vision", now=NOW
    )
    return Place(acme, research, project)


def user(name="ada", *, is_platform_admin=False, role=None, project_id=None, tenant_id=None):
    user_id = create_user(
        actor=SYSTEM,
        name=name,
        email="",
        password=PASSWORD,
        is_platform_admin=is_platform_admin,
        now=NOW,
    )
    if role:
        set_membership(
            actor=SYSTEM,
            user_id=user_id,
            role=Role(role),
            project_id=project_id,
            tenant_id=tenant_id,
            now=NOW,
        )
    return Principal(user_id, name, is_platform_admin)


def gpu_info(uuid="GPU-0", *, index=0, memory_mib=GPU_MIB, mode=SharingMode.SHARE, **changes):
    info = GpuInfo(
        uuid=uuid,
        index=index,
        model=H200,
        memory_mib=memory_mib,
        mode=mode,
        simulated=True,
        healthy=True,
    )
    return info.model_copy(update=changes)


def inventory(*gpus, stream_id="stream-1", boot_id="boot-1"):
    return Inventory(
        node_name="node-1",
        agent_version="1",
        boot_id=boot_id,
        stream_id=stream_id,
        at=NOW,
        isolated=True,
        gpus=list(gpus),
    )


def node(name="node-1", *gpus):
    """A ready node with these GPUs, one of whole capacity by default; its id."""
    row = Node.objects.create(
        name=name, address="https://127.0.0.1:1", state=NodeState.ENROLLED, created_at=NOW
    )
    record_inventory(node_id=row.id, inventory=inventory(*(gpus or [gpu_info()])), now=NOW)
    return row.id


def gpu(uuid="GPU-0"):
    """The GPU as the fleet shows it now."""
    return next(gpu for node in fleet_view() for gpu in node.gpus if gpu.uuid == uuid)


def wanted(gpu_id, *, compute_milli=250, memory_mib=8192, kind=SliceKind.SHARE, **mig):
    return NewLease(
        lease_id=new_id(),
        attempt_id=new_id(),
        gpu_id=gpu_id,
        kind=kind,
        memory_mib=memory_mib,
        compute_milli=compute_milli,
        **mig,
    )


def lease(*leases):
    """Open leases in a transaction of their own; their ids."""
    with guarded():
        open_leases(list(leases), now=NOW)
    return [new.lease_id for new in leases]


def later(seconds):
    return NOW + timedelta(seconds=seconds)
