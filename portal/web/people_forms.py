"""What people type about users and about themselves."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.accounts.services import LONGEST_PASSWORD, LONGEST_USER_NAME
from portal.web.forms import Plain


def _password(label: Any, autocomplete: str, help_text: Any = "") -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=LONGEST_PASSWORD,
        strip=False,
        help_text=help_text,
        widget=forms.PasswordInput(attrs={"autocomplete": autocomplete}),
    )


class UserForm(Plain):
    name = forms.CharField(
        label=_("Name"),
        max_length=LONGEST_USER_NAME,
        help_text=_("With which the person signs in. It never changes."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "off"}),
    )
    email = forms.EmailField(label=_("E-mail"), required=False, max_length=254)
    is_platform_admin = forms.BooleanField(
        label=_("Administrator of the whole platform"), required=False
    )


class NewPasswordForm(Plain):
    """A new password, typed twice."""

    password = _password(
        _("New password"), "new-password", _("At least 8 characters, no common word.")
    )
    again = _password(_("The same again"), "new-password")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("password") != cleaned.get("again"):
            self.add_error("again", gettext("The two passwords are not the same."))
        return cleaned


class ChangePasswordForm(NewPasswordForm):
    old = _password(_("Password of now"), "current-password")
    field_order = ("old", "password", "again")


class JoinForm(NewPasswordForm):
    """A new user who was invited."""

    name = forms.CharField(
        label=_("Name"),
        max_length=LONGEST_USER_NAME,
        help_text=_("With which you will sign in. It never changes."),
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "off"}),
    )
    field_order = ("name", "password", "again")


class PasswordForm(Plain):
    old = _password(_("Your password"), "current-password")


class CodeForm(Plain):
    code = forms.CharField(
        label=_("Code"),
        max_length=40,
        help_text=_("Six digits of the app, or a recovery code."),
        widget=forms.TextInput(
            attrs={"autocomplete": "one-time-code", "spellcheck": "false", "class": "code"}
        ),
    )
