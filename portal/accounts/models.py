"""Who pays, where people work, and who they are."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models import Q
from django.utils.crypto import salted_hmac

from portal.accounts.roles import Role
from portal.core.ids import new_id


class UserManager(BaseUserManager["User"]):
    """Finds users by name, as Django's sign-in wants it; services make them."""


class User(AbstractBaseUser):
    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    name = models.CharField(max_length=150, unique=True)
    email = models.EmailField(blank=True)
    is_active = models.BooleanField(default=True)
    is_platform_admin = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    session_generation = models.PositiveIntegerField(default=0)

    USERNAME_FIELD = "name"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects = UserManager()

    def __str__(self) -> str:
        return self.name

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Sessions end with the password, and with the generation, which services raise."""
        return salted_hmac(
            "portal.accounts.sessions",
            f"{self.session_generation}:{self.password}",
            secret=secret,
            algorithm="sha256",
        ).hexdigest()


class Tenant(models.Model):
    """Who pays: an organisation unit; tenants form a tree of any depth.

    ``path`` lists the ids from the root to this tenant, ``/a/b/``: a tenant's subtree is a prefix.
    """

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=50, unique=True)
    parent = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="children")
    path = models.CharField(max_length=1000, unique=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Project(models.Model):
    """Where people work: owns jobs; the unit of fair share."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="projects")
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=50, unique=True)
    last_job_number = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A role of a user in one project, or in one tenant and everything below it."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    project = models.ForeignKey(
        Project, null=True, on_delete=models.CASCADE, related_name="memberships"
    )
    tenant = models.ForeignKey(Tenant, null=True, on_delete=models.CASCADE, related_name="+")
    role = models.CharField(max_length=20, choices=[(role.value, role.value) for role in Role])

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(project__isnull=True) ^ Q(tenant__isnull=True),
                name="membership_in_one_place",
            ),
            models.UniqueConstraint(
                fields=["user", "project"],
                condition=Q(project__isnull=False),
                name="membership_once_per_project",
            ),
            models.UniqueConstraint(
                fields=["user", "tenant"],
                condition=Q(tenant__isnull=False),
                name="membership_once_per_tenant",
            ),
        ]


class ApiToken(models.Model):
    """A key for programs: only a keyed digest is kept; scopes are a subset of its owner's."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)


class PasswordLink(models.Model):
    """The right to set a user's password once; only a keyed digest of the link is kept."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class Invitation(models.Model):
    """A role in one place for whoever holds the link, once; only a keyed digest is kept."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    digest = models.CharField(max_length=64, unique=True)
    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE, related_name="+")
    tenant = models.ForeignKey(Tenant, null=True, on_delete=models.CASCADE, related_name="+")
    role = models.CharField(max_length=20, choices=[(role.value, role.value) for role in Role])
    email = models.EmailField(blank=True)
    invited_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(project__isnull=True) ^ Q(tenant__isnull=True),
                name="invitation_to_one_place",
            )
        ]


class SecondFactor(models.Model):
    """The secret that a user shares with an app; nothing is asked for until it is confirmed."""

    user = models.OneToOneField(
        User, primary_key=True, on_delete=models.CASCADE, related_name="second_factor"
    )
    sealed_secret = models.CharField(max_length=300)
    created_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)
    last_step = models.BigIntegerField(default=0)


class RecoveryCode(models.Model):
    """Signs in once without the app; only a keyed digest is kept."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, unique=True)
    used_at = models.DateTimeField(null=True)
