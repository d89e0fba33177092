"""Jobs and arrays as the API reads and writes them."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from rest_framework import serializers

from jobs.domain.files import MAX_SCRIPT_BYTES
from jobs.domain.readiness import Need
from jobs.domain.states import Form, JobState, PriorityClass, Wish
from jobs.selectors import ArrayView, JobDetail, JobRow
from portal.api.serializers.fields import (
    ExitCodes,
    Flag,
    Input,
    Moment,
    MoneyOut,
    Output,
    Text,
    TextMap,
    Whole,
)


class RequestIn(Input):
    """What a template can hold too."""

    command = serializers.ListField(
        child=Text(allow_blank=True, trim_whitespace=False, max_length=131_072),
        min_length=1,
        max_length=1_000,
        required=False,
        help_text="the program and its arguments; no shell reads it",
    )
    memory_mib = Whole(required=False, allow_null=True, help_text="GPU memory; absent: whole GPU")
    compute_milli = Whole(
        required=False,
        allow_null=True,
        help_text="thousandths of a GPU's compute; absent: as much as the memory's part, "
        "all of it without memory_mib",
    )
    form = serializers.ChoiceField([form.value for form in Form], required=False)
    gpu_model = Text(required=False, allow_blank=True, max_length=100)
    name = Text(required=False, allow_blank=True, max_length=100)
    env = TextMap(required=False, help_text="added to the environment of the command")
    priority = serializers.ChoiceField([value.value for value in PriorityClass], required=False)
    time_limit_s = Whole(required=False, allow_null=True)
    max_attempts = Whole(required=False)
    array_size = Whole(
        required=False, allow_null=True, help_text="members, told apart by GPUCOMMONS_ARRAY_INDEX"
    )
    max_running = Whole(
        required=False, allow_null=True, help_text="so many members of the array run at once"
    )
    retry_exit_codes = ExitCodes(
        required=False,
        max_length=64,
        help_text="exit codes that are tried again, as 75 or 100-110, after 10 s, 20 s ... 10 min",
    )
    secrets = serializers.ListField(
        child=Text(max_length=60),
        required=False,
        max_length=100,
        help_text="names of the project's secrets, which the command finds in its environment",
    )


class FileIn(Input):
    """A file for the work folder of the job."""

    path = Text(max_length=1024, help_text="relative, without ..")
    content_base64 = Text(allow_blank=True, max_length=1_500_000)
    executable = Flag(required=False, default=False)

    def validate_content_base64(self, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise serializers.ValidationError("This is no base64.") from error


class JobIn(RequestIn):
    project = Text(max_length=50, help_text="id or short name (slug) of the project")
    template = Text(
        required=False,
        allow_null=True,
        max_length=60,
        help_text="a template of the project; fields that are sent win over its own",
    )
    not_before = Moment(required=False, allow_null=True, help_text="it starts not before")
    after_ok = serializers.ListField(
        child=Text(max_length=60),
        required=False,
        max_length=100,
        help_text="jobs that must have succeeded, by id or short name",
    )
    after_any = serializers.ListField(
        child=Text(max_length=60),
        required=False,
        max_length=100,
        help_text="jobs that must have ended, by id or short name",
    )
    hold = Flag(required=False, help_text="wait until somebody releases it")

    script = Text(
        required=False,
        allow_null=True,
        trim_whitespace=False,
        max_length=MAX_SCRIPT_BYTES,
        help_text="text that is written into the work folder; without a command bash runs it",
    )
    script_name = Text(required=False, max_length=255, help_text="script.sh unless told")
    files = FileIn(many=True, required=False, help_text="at most 1 MiB together")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "command" not in attrs and not (attrs.get("template") or attrs.get("script")):
            missing = serializers.ValidationError("This field is required.", code="required")
            raise serializers.ValidationError({"command": missing.detail})
        return attrs


class JobFilterIn(Input):
    project = serializers.CharField(required=False, max_length=50)
    state = serializers.CharField(
        required=False, max_length=200, help_text="one or more states, separated by commas"
    )
    array = serializers.CharField(required=False, max_length=36)
    cursor = serializers.CharField(
        required=False, max_length=36, help_text="next_cursor of the page before"
    )
    limit = serializers.IntegerField(required=False, default=50, min_value=1, max_value=200)


class WaitIn(Input):
    """With both, the answer waits until the state is none of these, or the time is over."""

    wait_ms = serializers.IntegerField(required=False, default=0, min_value=0, max_value=60_000)
    unless_state = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=200,
        help_text="one or more states, separated by commas",
    )


class LogIn(Input):
    attempt = serializers.IntegerField(
        required=False, default=None, allow_null=True, min_value=1, max_value=1_000_000
    )
    offset = serializers.IntegerField(required=False, default=0, min_value=0, max_value=2**53)
    limit = serializers.IntegerField(
        required=False, default=65_536, min_value=1, max_value=1_048_576
    )
    wait_ms = serializers.IntegerField(required=False, default=0, min_value=0, max_value=30_000)


class LogSearchIn(Input):
    q = serializers.CharField(max_length=200, help_text="text; case does not matter")
    attempt = serializers.IntegerField(
        required=False, default=None, allow_null=True, min_value=1, max_value=1_000_000
    )
    limit = serializers.IntegerField(required=False, default=100, min_value=1, max_value=1000)


class LogLineOut(Output):
    offset = serializers.IntegerField(help_text="in bytes, of the line's begin")
    text = serializers.CharField()


class LogSearchOut(Output):
    items = LogLineOut(many=True)


class AcceptedJobOut(Output):
    """A job, or an array with its members' ids."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(["job", "array"])
    state = serializers.CharField()
    number = serializers.IntegerField(help_text="of the job, or of the array's first member")
    size = serializers.IntegerField()
    job_ids = serializers.ListField(child=serializers.CharField())


class JobRowOut(Output):
    """A job as a list shows it; ``short_name`` is what people write: ``vision/12``."""

    id = serializers.CharField()
    number = serializers.IntegerField()
    short_name = serializers.SerializerMethodField()
    name = serializers.CharField()
    project = serializers.CharField(source="project_slug")
    project_id = serializers.CharField()
    user = serializers.CharField(source="user_name")
    memory_mib = serializers.IntegerField(allow_null=True)
    compute_milli = serializers.IntegerField()
    form = serializers.ChoiceField([form.value for form in Form])
    gpu_model = serializers.CharField(allow_blank=True)
    priority = serializers.ChoiceField([value.value for value in PriorityClass])
    state = serializers.ChoiceField([state.value for state in JobState])
    wish = serializers.ChoiceField([wish.value for wish in Wish])
    submitted_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    exit_code = serializers.IntegerField(allow_null=True)
    exit_signal = serializers.IntegerField(allow_null=True)
    reason_code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    wait_code = serializers.CharField(allow_blank=True)
    wait_reason = serializers.CharField(allow_blank=True)
    wait_position = serializers.IntegerField(allow_null=True)
    array_id = serializers.CharField(allow_null=True)
    array_index = serializers.IntegerField(allow_null=True)
    node_unreachable = serializers.BooleanField(help_text="its node has not answered for a while")

    def get_short_name(self, job: JobRow) -> str:
        return f"{job.project_slug}/{job.number}"


class LeaseOut(Output):
    """What an attempt was promised, how hard that is enforced and what was measured.

    What was not measured is null, never 0.
    """

    id = serializers.CharField()
    node_name = serializers.CharField()
    gpu_model = serializers.CharField()
    gpu_uuid = serializers.CharField()
    gpu_simulated = serializers.BooleanField()
    kind = serializers.CharField()
    memory_mib = serializers.IntegerField()
    compute_milli = serializers.IntegerField()
    mig_profile = serializers.CharField(allow_null=True)
    enforcement_memory = serializers.CharField(allow_null=True)
    enforcement_compute = serializers.CharField(allow_null=True)
    memory_used_mib = serializers.IntegerField(allow_null=True)
    memory_peak_mib = serializers.IntegerField(allow_null=True)
    utilisation_percent = serializers.FloatField(allow_null=True)


class AttemptOut(Output):
    """One try."""

    number = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    exit_code = serializers.IntegerField(allow_null=True)
    exit_signal = serializers.IntegerField(allow_null=True)
    end_reason = serializers.CharField(allow_blank=True)
    lease = LeaseOut()


class TransitionOut(Output):
    at = serializers.DateTimeField()
    from_state = serializers.CharField(allow_blank=True)
    to_state = serializers.CharField()
    event = serializers.CharField()
    actor = serializers.CharField()
    attempt_number = serializers.IntegerField(allow_null=True)
    detail = serializers.CharField(allow_blank=True)


class UseOut(Output):
    """Metered use; of a running job also what it used since."""

    seconds = serializers.FloatField(help_text="metered time of leases")
    gpu_seconds = serializers.FloatField(help_text="the same weighted by the slice's size")
    cost = MoneyOut()


class DependencyOut(Output):
    """Another job that this one waits or waited for; only those that the caller may see."""

    job_id = serializers.CharField()
    short_name = serializers.CharField()
    need = serializers.ChoiceField([need.value for need in Need])
    state = serializers.ChoiceField([state.value for state in JobState])


class JobRestOut(Output):
    command = serializers.ListField(child=serializers.CharField())
    env_names = serializers.ListField(child=serializers.CharField())
    secrets = serializers.ListField(child=serializers.CharField())
    files = serializers.ListField(child=serializers.CharField(), help_text="their paths")
    time_limit_s = serializers.IntegerField(allow_null=True)
    max_attempts = serializers.IntegerField()
    retry_exit_codes = serializers.ListField(child=serializers.CharField())
    not_before = serializers.DateTimeField(allow_null=True)
    dependencies = DependencyOut(many=True)
    array_max_running = serializers.IntegerField(allow_null=True)
    usage = UseOut()
    attempts = AttemptOut(many=True)
    transitions = TransitionOut(many=True)


class JobOut(JobRowOut, JobRestOut):
    """A job with its story, attempts, use and cost."""

    def to_representation(self, detail: JobDetail) -> dict[str, Any]:
        row = JobRowOut().to_representation(detail.row)
        return {**row, **JobRestOut().to_representation(detail)}


class JobPageOut(Output):
    items = JobRowOut(many=True, source="rows")
    next_cursor = serializers.CharField(allow_null=True, source="next_before")


class ArrayOut(Output):
    id = serializers.CharField()
    kind = serializers.SerializerMethodField()
    project_id = serializers.CharField()
    size = serializers.IntegerField()
    max_running = serializers.IntegerField(allow_null=True)
    state = serializers.ChoiceField([state.value for state in JobState])
    counts = serializers.DictField(child=serializers.IntegerField())
    submitted_at = serializers.DateTimeField()
    job_ids = serializers.ListField(child=serializers.CharField())

    def get_kind(self, array: ArrayView) -> str:
        return "array"
