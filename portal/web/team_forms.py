"""What people type into the pages about tenants, projects and members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.accounts.roles import Role
from portal.accounts.services import LONGEST_NAME, LONGEST_USER_NAME
from portal.web.forms import Plain

ROLE_LABELS = {
    Role.VIEWER: _("Viewer: sees jobs and use"),
    Role.MEMBER: _("Member: submits jobs too"),
    Role.PROJECT_ADMIN: _("Project administrator: manages members too"),
    Role.TENANT_ADMIN: _("Tenant administrator: manages limits and projects too"),
}
SHORT_ROLE_LABELS = {
    Role.VIEWER: _("Viewer"),
    Role.MEMBER: _("Member"),
    Role.PROJECT_ADMIN: _("Project administrator"),
    Role.TENANT_ADMIN: _("Tenant administrator"),
}
NO_PARENT = "-"
_SLUG_HELP = _("a-z, 0-9 and '-', a letter first. It never changes.")


def role_choices(roles: Iterable[Role]) -> list[tuple[str, str]]:
    return [(role.value, str(ROLE_LABELS[role])) for role in roles]


class NameForm(Plain):
    name = forms.CharField(label=_("Name"), max_length=LONGEST_NAME)


class PlaceForm(NameForm):
    """A new tenant or project."""

    slug = forms.CharField(
        label=_("Short name"),
        max_length=31,
        help_text=_SLUG_HELP,
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "off"}),
    )


class MemberForm(Plain):
    user = forms.CharField(
        label=_("User"),
        max_length=LONGEST_USER_NAME,
        help_text=_("The exact name with which the person signs in."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(label=_("Role"))

    def __init__(self, *args: Any, roles: Sequence[Role], **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["role"].choices = role_choices(roles)  # type: ignore[attr-defined]


class MoveForm(Plain):
    parent = forms.ChoiceField(label=_("Below"))

    def __init__(
        self, *args: Any, parents: Sequence[tuple[str, str]], with_roots: bool, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        roots = [(NO_PARENT, gettext("Nothing: a root"))] if with_roots else []
        self.fields["parent"].choices = [*roots, *parents]  # type: ignore[attr-defined]


class InviteForm(Plain):
    role = forms.ChoiceField(label=_("Role"))
    days = forms.IntegerField(
        label=_("Valid for (days)"),
        min_value=1,
        max_value=30,
        initial=7,
        help_text=_("At most 30."),
    )
    email = forms.EmailField(
        label=_("E-mail"),
        required=False,
        max_length=254,
        help_text=_("A note of whom it is for; you send the link yourself."),
    )

    def __init__(self, *args: Any, roles: Sequence[Role], **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["role"].choices = role_choices(roles)  # type: ignore[attr-defined]
