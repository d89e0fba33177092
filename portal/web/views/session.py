"""Sign in and out."""

from __future__ import annotations

import hashlib
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.core.cache import cache
from django.http import HttpRequest

TRIES = 8
WITHIN_S = 300


class SignInForm(AuthenticationForm):
    """Django's, with a limit on wrong passwords for a name from an address."""

    def __init__(self, request: HttpRequest | None = None, *args: Any, **options: Any) -> None:
        super().__init__(request, *args, **options)
        self.label_suffix = ""
        self.fields["username"].label = "Name"

    def clean(self) -> dict[str, Any]:
        key = self._counter()
        if cache.get(key, 0) >= TRIES:
            raise forms.ValidationError(
                f"Too many wrong passwords. Wait {WITHIN_S // 60} minutes and try again.",
                code="rate_limited",
            )
        try:
            cleaned = super().clean()
        except forms.ValidationError:
            if not cache.add(key, 1, WITHIN_S):
                cache.incr(key)
            raise
        cache.delete(key)
        return cleaned

    def _counter(self) -> str:
        name = str(self.cleaned_data.get("username", "")).casefold()
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        digest = hashlib.sha256(f"{name}\0{address}".encode(errors="replace")).hexdigest()
        return f"sign-in:{digest}"


class SignIn(LoginView):
    template_name = "web/sign_in.html"
    form_class = SignInForm
    redirect_authenticated_user = True


class SignOut(LogoutView):
    next_page = "web:sign-in"
