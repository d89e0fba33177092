"""What people type into pages; sizes in GiB and percent become MiB and thousandths here."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy as _

from jobs.domain.files import MAX_SCRIPT_BYTES, JobFile
from jobs.domain.states import Form, PriorityClass
from portal.web.base import choices

_FORM_LABELS = {
    Form.ANY: _("Whatever fits best"),
    Form.WHOLE: _("A whole GPU"),
    Form.SHARE: _("A share of a GPU"),
    Form.MIG: _("A MIG instance"),
}


_PRIORITY_LABELS = {
    PriorityClass.LOW: _("Low"),
    PriorityClass.NORMAL: _("Normal"),
    PriorityClass.HIGH: _("High"),
}


class Plain(forms.Form):
    """Base: fields are drawn by ``web/_field.html``."""

    use_required_attribute = True

    def __init__(self, *args: Any, **options: Any) -> None:
        options["label_suffix"] = ""
        super().__init__(*args, **options)


class FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class ManyFiles(forms.FileField):
    """Several files of one field, with the names that the browser gave."""

    widget = FilesInput

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile[Any]]:
        given = data if isinstance(data, list | tuple) else [data]
        cleaned = (forms.FileField.clean(self, one, initial) for one in given if one)
        return [one for one in cleaned if one]


class SubmitForm(Plain):
    project = forms.ChoiceField(label=_("Project"))
    command = forms.CharField(
        label=_("Command"),
        max_length=65_536,
        widget=forms.TextInput(
            attrs={
                "placeholder": "python3 train.py --epochs 3",
                "spellcheck": "false",
                "autocapitalize": "off",
                "class": "code",
            }
        ),
        help_text=_(
            "The program and its arguments; quote words with spaces. No shell reads it: "
            "for pipes write sh -c '...'."
        ),
    )
    name = forms.CharField(
        label=_("Name"), max_length=100, required=False, help_text=_("Shown in lists.")
    )
    memory_gib = forms.DecimalField(
        label=_("GPU memory (GiB)"),
        required=False,
        min_value=Decimal("0.001"),
        max_value=Decimal(100_000),
        max_digits=10,
        decimal_places=3,
        help_text=_("Empty: a whole GPU."),
    )
    compute_percent = forms.DecimalField(
        label=_("Compute (%)"),
        required=False,
        min_value=Decimal("0.1"),
        max_value=Decimal(100),
        max_digits=4,
        decimal_places=1,
        help_text=_("Empty: as much as the memory’s part."),
    )
    form = forms.ChoiceField(
        label=_("Kind of slice"), required=False, choices=[(f.value, _FORM_LABELS[f]) for f in Form]
    )
    gpu_model = forms.ChoiceField(label=_("GPU model"), required=False)
    priority = forms.ChoiceField(
        label=_("Priority"),
        required=False,
        initial=PriorityClass.NORMAL,
        choices=[(value.value, _PRIORITY_LABELS[value]) for value in PriorityClass],
    )
    time_limit_min = forms.IntegerField(
        label=_("Time limit (minutes)"),
        required=False,
        min_value=1,
        max_value=527_040,
        help_text=_("The job is ended after it. Empty: none."),
    )
    max_attempts = forms.IntegerField(
        label=_("Attempts in all"), required=False, min_value=1, max_value=100, initial=3
    )
    array_size = forms.IntegerField(
        label=_("Array size"),
        required=False,
        min_value=1,
        max_value=10_000,
        help_text=_("So many jobs, told apart by GPUCOMMONS_ARRAY_INDEX. Empty: one job."),
    )
    max_running = forms.IntegerField(
        label=_("Members at once"),
        required=False,
        min_value=1,
        max_value=10_000,
        help_text=_("So many of the array run at once. Empty: as many as there is room for."),
    )
    retry_exit_codes = forms.CharField(
        label=_("Exit codes to try again"),
        required=False,
        max_length=400,
        help_text=_("As 75, 100-110. After 10 s, then 20 s, up to 10 minutes."),
    )
    not_before = forms.DateTimeField(
        label=_("Start not before (UTC)"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"],
    )
    after_ok = forms.CharField(
        label=_("After these jobs succeed"),
        required=False,
        max_length=4_000,
        help_text=_("Short names as vision/12, separated by commas."),
    )
    after_any = forms.CharField(
        label=_("After these jobs end"),
        required=False,
        max_length=4_000,
        help_text=_("However they end."),
    )
    env = forms.CharField(
        label=_("Environment"),
        required=False,
        max_length=65_536,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "code"}),
        help_text=_("NAME=VALUE, one a line."),
    )
    secrets = forms.CharField(
        label=_("Secrets"),
        required=False,
        max_length=5_000,
        help_text=_("Names of the project’s secrets for the environment, separated by commas."),
    )
    script = forms.CharField(
        label=_("Script"),
        required=False,
        max_length=MAX_SCRIPT_BYTES,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "code"}),
        help_text=_("Lies beside the command as script.sh: bash script.sh runs it."),
    )
    uploads = ManyFiles(
        label=_("Files"),
        required=False,
        help_text=_("Lie beside the command; at most 1 MiB together."),
    )
    key = forms.CharField(max_length=100, widget=forms.HiddenInput)

    def __init__(
        self, *args: Any, projects: Sequence[str], models: Sequence[str], **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.fields["project"].choices = choices(projects)  # type: ignore[attr-defined]
        self.fields["gpu_model"].choices = choices(models, empty=str(_("Any")))  # type: ignore[attr-defined]

    def clean_command(self) -> tuple[str, ...]:
        try:
            words = tuple(shlex.split(self.cleaned_data["command"]))
        except ValueError as error:
            raise ValidationError(
                _("A quote is not closed: %(error)s.") % {"error": error}
            ) from error
        if not words:
            raise ValidationError(_("There is no command to run."))
        return words

    def clean_retry_exit_codes(self) -> tuple[str, ...]:
        return _listed(self.cleaned_data["retry_exit_codes"])

    def clean_secrets(self) -> tuple[str, ...]:
        return _listed(self.cleaned_data["secrets"])

    def clean_after_ok(self) -> tuple[str, ...]:
        return _listed(self.cleaned_data["after_ok"])

    def clean_after_any(self) -> tuple[str, ...]:
        return _listed(self.cleaned_data["after_any"])

    def clean_env(self) -> dict[str, str]:
        env = {}
        for line in self.cleaned_data["env"].splitlines():
            name, separator, value = line.partition("=")
            if line.strip() and not (separator and name.strip()):
                raise ValidationError(f"{line[:80]!r} is not NAME=VALUE.")
            if line.strip():
                env[name.strip()] = value
        return env

    @property
    def job_files(self) -> tuple[JobFile, ...]:
        """Uploads and the script; forms send lines with CR and LF, which no shell wants."""
        files = [JobFile(one.name or "", one.read()) for one in self.cleaned_data["uploads"]]
        if script := self.cleaned_data["script"].replace("\r\n", "\n"):
            files.append(JobFile("script.sh", script.encode(), 0o755))
        return tuple(files)

    @property
    def memory_mib(self) -> int | None:
        return gib_to_mib(self.cleaned_data.get("memory_gib"))

    @property
    def compute_milli(self) -> int | None:
        value = self.cleaned_data.get("compute_percent")
        return None if value is None else int(value * 10)


class EstimateForm(Plain):
    """The part of the submit form that decides the price."""

    memory_gib = SubmitForm.base_fields["memory_gib"]
    compute_percent = SubmitForm.base_fields["compute_percent"]
    form = SubmitForm.base_fields["form"]
    gpu_model = forms.CharField(required=False, max_length=100)


class SecretForm(Plain):
    name = forms.CharField(
        label=_("Name"), max_length=50, help_text=_("As of a variable: HF_TOKEN.")
    )
    value = forms.CharField(
        label=_("Value"),
        max_length=32_768,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("Never shown again."),
    )


class TokenForm(Plain):
    name = forms.CharField(label=_("Name"), max_length=100, help_text=_("What it is for."))
    days = forms.IntegerField(
        label=_("Valid for (days)"),
        min_value=1,
        max_value=366,
        initial=90,
        help_text=_("At most 366."),
    )
    scopes = forms.MultipleChoiceField(label=_("Scopes"), widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, scopes: Sequence[str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["scopes"].choices = choices(scopes)  # type: ignore[attr-defined]


class QuotaForm(Plain):
    limit_gpus = forms.DecimalField(
        label=_("GPUs at once"),
        required=False,
        min_value=0,
        max_value=Decimal(2_000_000),
        max_digits=10,
        decimal_places=3,
        help_text=_("Empty: no limit here."),
    )
    queued_limit = forms.IntegerField(
        label=_("Waiting jobs"),
        required=False,
        min_value=0,
        max_value=2_000_000_000,
        help_text=_("Empty: no limit."),
    )

    @property
    def limit_milli(self) -> int | None:
        value = self.cleaned_data["limit_gpus"]
        return None if value is None else int(value * 1000)


class EnrolForm(Plain):
    node_name = forms.CharField(
        label=_("Name of the node"), max_length=100, help_text=_("Use the host’s name.")
    )


class DrainForm(Plain):
    note = forms.CharField(
        label=_("Why"),
        required=False,
        max_length=200,
        help_text=_("Shown beside the node, for example “new disks until 18:00”."),
    )


class LostForm(Plain):
    name = forms.CharField(
        label=_("Type the name of the node"),
        max_length=100,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    reason = forms.CharField(
        label=_("How do you know that nothing runs there any more?"), max_length=500
    )


class PriceForm(Plain):
    """One field for each model of the fleet, in whole units of the currency for an hour."""

    effective_from = forms.DateTimeField(
        label=_("Valid from (UTC)"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"],
        help_text=_("Empty: in a minute."),
    )

    def __init__(self, *args: Any, models: list[str], currency: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self.models = models
        for number, model in enumerate(models):
            self.fields[f"rate_{number}"] = forms.DecimalField(
                label=_("%(model)s (%(currency)s per GPU hour)")
                % {
                    "model": _("Every other model") if model == "*" else model,
                    "currency": currency,
                },
                min_value=0,
                max_value=Decimal(1_000_000),
                max_digits=13,
                decimal_places=6,
            )

    @property
    def rates(self) -> dict[str, int]:
        return {
            model: int(self.cleaned_data[f"rate_{number}"] * 1_000_000)
            for number, model in enumerate(self.models)
        }


class AuditForm(Plain):
    """Filters of the audit; every one may be left out."""

    use_required_attribute = False
    actor = forms.CharField(label=_("Who"), required=False, max_length=200)
    verb = forms.CharField(
        label=_("What"),
        required=False,
        max_length=64,
        widget=forms.TextInput(attrs={"placeholder": "job.", "spellcheck": "false"}),
    )
    object = forms.CharField(label=_("Object id"), required=False, max_length=64)
    project = forms.ChoiceField(label=_("Project"), required=False)
    since = forms.DateField(
        label=_("From"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    until = forms.DateField(
        label=_("To"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )

    def __init__(self, *args: Any, projects: Sequence[str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["project"].choices = choices(projects, empty=str(_("All")))  # type: ignore[attr-defined]


def _listed(text: str) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def gib_to_mib(value: Decimal | None) -> int | None:
    return None if value is None else max(1, int(value * 1024))
