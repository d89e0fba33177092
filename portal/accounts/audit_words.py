"""Audit entries as sentences. Pure: whatever has no sentence of its own still gets a plain one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_LONGEST = 300


@dataclass(frozen=True)
class Names:
    """What ids are called: users by name, tenants by name, projects by short name."""

    users: Mapping[str, str]
    tenants: Mapping[str, str]
    projects: Mapping[str, str]


@dataclass(frozen=True)
class _Facts:
    verb: str
    object_type: str
    object_id: str
    tenant_id: str
    project_id: str
    detail: Mapping[str, Any]
    names: Names

    @property
    def user(self) -> str:
        return self.names.users.get(self.object_id) or self.told("name") or "a user"

    @property
    def tenant(self) -> str:
        return f"tenant {self.names.tenants.get(self.tenant_id, 'that is unknown')}"

    @property
    def project(self) -> str:
        return f"project {self.names.projects.get(self.project_id, 'that is unknown')}"

    @property
    def place(self) -> str:
        return self.project if self.project_id else self.tenant

    def told(self, key: str) -> str:
        value = self.detail.get(key)
        return "" if value is None else str(value)

    def tenant_named(self, key: str) -> str:
        name = self.names.tenants.get(self.told(key))
        return f"below {name}" if name else "as a root"


def sentence(
    *,
    actor: str,
    verb: str,
    object_type: str,
    object_id: str,
    tenant_id: str,
    project_id: str,
    detail: Mapping[str, Any],
    names: Names,
) -> str:
    """Say in plain words who did what, for example ``ada made grace member of project vision.``"""
    facts = _Facts(verb, object_type, object_id, tenant_id, project_id, detail, names)
    words = _SENTENCES.get(verb, _plain)(facts)
    text = f"{actor} {' '.join(words.split())}"
    return (text if len(text) < _LONGEST else text[: _LONGEST - 1] + "…") + "."


def _plain(facts: _Facts) -> str:
    """``node.became_ready`` as ``noted: node became ready``."""
    place = f" in {facts.place}" if facts.project_id or facts.tenant_id else ""
    return f"noted: {facts.verb.replace('.', ' ').replace('_', ' ')}{place}"


def _role(facts: _Facts) -> str:
    role = facts.told("role").replace("_", " ")
    if not role:
        return f"removed {facts.user} from {facts.place}"
    return f"made {facts.user} {role} of {facts.place}"


def _submitted(facts: _Facts) -> str:
    name = f" {facts.told('name')!r}" if facts.told("name") else ""
    if facts.object_type == "array":
        return f"submitted an array of {facts.told('jobs')} jobs{name} in {facts.project}"
    return f"submitted a job{name} in {facts.project}"


def _quota(facts: _Facts) -> str:
    after = facts.detail.get("after", {}).get("limit_milli")
    before = facts.detail.get("before", {}).get("limit_milli")
    return f"set the limit of {facts.place} from {_gpus(before)} to {_gpus(after)}"


def _gpus(milli: int | None) -> str:
    return "no limit" if milli is None else f"{milli / 1000:g} GPUs"


def _created_user(facts: _Facts) -> str:
    kind = "platform administrator" if facts.detail.get("is_platform_admin") else "user"
    return f"made the {kind} {facts.user}"


def _invited(facts: _Facts) -> str:
    return f"invited somebody as {facts.told('role').replace('_', ' ')} to {facts.place}"


_SENTENCES: dict[str, Callable[[_Facts], str]] = {
    "tenant.created": lambda f: f"made the {f.tenant} {f.tenant_named('parent_id')}",
    "tenant.renamed": lambda f: f"renamed the tenant {f.told('old_name')} to {f.told('new_name')}",
    "tenant.moved": lambda f: (
        f"moved the {f.tenant} {f.tenant_named('parent_id')}; "
        f"it was {f.tenant_named('old_parent_id')}"
    ),
    "project.created": lambda f: f"made the {f.project} in {f.tenant}",
    "project.renamed": lambda f: f"renamed the {f.project} to {f.told('new_name')!r}",
    "user.created": _created_user,
    "user.deactivated": lambda f: f"deactivated {f.user}; their sessions and tokens ended",
    "user.reactivated": lambda f: f"let {f.user} sign in again",
    "password.changed": lambda f: "changed their password",
    "password.reset": lambda f: f"set a new password of {f.user} by a link",
    "password_reset.issued": lambda f: f"made a link to set a new password for {f.user}",
    "second_factor.enabled": lambda f: "turned on the second factor",
    "second_factor.disabled": lambda f: "turned off the second factor",
    "second_factor.reset": lambda f: f"removed the second factor of {f.user}",
    "second_factor.recovered": lambda f: "signed in with a recovery code",
    "membership.set": _role,
    "invitation.issued": _invited,
    "invitation.revoked": lambda f: f"revoked an invitation to {f.place}",
    "invitation.accepted": lambda f: (
        f"joined {f.place} as {f.told('role').replace('_', ' ')} by an invitation"
    ),
    "token.issued": lambda f: f"issued the token {f.told('name')!r}",
    "token.revoked": lambda f: "revoked a token",
    "job.submitted": _submitted,
    "job.cancelled": lambda f: f"cancelled a job of {f.project}",
    "quota.set": _quota,
    "price.published": lambda f: f"published prices from {f.told('effective_from')} on",
    "enrolment_code.issued": lambda f: f"made an enrolment code for node {f.told('node_name')}",
    "node.enrolled": lambda f: f"joined the fleet at {f.told('address')}",
    "node.renewed": lambda f: f"renewed its certificate at {f.told('address')}",
    "gpu.withdrawn": lambda f: f"took GPU {f.told('uuid')} out of service: {f.told('reason')}",
    "gpu.returned": lambda f: f"put GPU {f.told('uuid')} back into service",
}
