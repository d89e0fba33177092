"""Sign in and out."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy

from portal.accounts.second_factor import has_second_factor
from portal.web.limits import WITHIN_S, Guesses
from portal.web.views.second_factor import begin_sign_in


class SignInForm(AuthenticationForm):
    """Django's, with a limit on wrong passwords for a name from an address."""

    def __init__(self, request: HttpRequest | None = None, *args: Any, **options: Any) -> None:
        super().__init__(request, *args, **options)
        self.label_suffix = ""
        self.fields["username"].label = gettext_lazy("Name")

    def clean(self) -> dict[str, Any]:
        guesses = self._guesses()
        if guesses.spent:
            raise forms.ValidationError(
                f"Too many wrong passwords. Wait {WITHIN_S // 60} minutes and try again.",
                code="rate_limited",
            )
        try:
            cleaned = super().clean()
        except forms.ValidationError:
            guesses.wrong()
            raise
        guesses.right()
        return cleaned

    def _guesses(self) -> Guesses:
        name = str(self.cleaned_data.get("username", "")).casefold()
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        return Guesses("sign-in", name, address)


class SignIn(LoginView):
    template_name = "web/sign_in.html"
    form_class = SignInForm
    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        user = form.get_user()
        if has_second_factor(user.id):
            return begin_sign_in(self.request, user, then=self.get_success_url())
        return super().form_valid(form)


class SignOut(LogoutView):
    next_page = "web:sign-in"
