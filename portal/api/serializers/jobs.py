"""Jobs and arrays as the API reads and writes them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from jobs.domain.states import Form, JobState, PriorityClass, Wish
from portal.api.serializers.fields import Input, MoneyOut, Output, Text, TextMap, Whole


class JobIn(Input):
    project = Text(max_length=50, help_text="id or short name (slug) of the project")
    command = serializers.ListField(
        child=Text(allow_blank=True, trim_whitespace=False, max_length=131_072),
        min_length=1,
        max_length=1_000,
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


class JobFilterIn(Input):
    project = serializers.CharField(required=False, max_length=50)
    state = serializers.CharField(
        required=False, max_length=200, help_text="one or more states, separated by commas"
    )
    array = serializers.CharField(required=False, max_length=36)
    cursor = serializers.CharField(
        required=False, max_length=100, help_text="next_cursor of the page before"
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


class JobName(Output):
    """``short_name`` is what people write: ``vision/12``."""

    short_name = serializers.SerializerMethodField()

    def get_short_name(self, job: Any) -> str:
        return f"{job.project_slug}/{job.number}"


class AcceptedJobOut(JobName):
    """A job, or an array with ``size`` and the ids of its ``members``."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(["job", "array"])
    state = serializers.CharField()
    project = serializers.CharField()
    number = serializers.IntegerField(allow_null=True, help_text="null for an array")
    short_name = serializers.CharField(allow_null=True)  # type: ignore[assignment]
    size = serializers.IntegerField(required=False)
    members = serializers.ListField(child=serializers.CharField(), required=False)


class JobRowOut(JobName):
    id = serializers.CharField()
    number = serializers.IntegerField()
    name = serializers.CharField()
    project = serializers.CharField(source="project_slug")
    user = serializers.CharField(source="user_name")
    command = serializers.ListField(child=serializers.CharField())
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


class AttemptOut(Output):
    """One try. What was not measured is null, never 0."""

    number = serializers.IntegerField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    exit_code = serializers.IntegerField(allow_null=True)
    exit_signal = serializers.IntegerField(allow_null=True)
    end_reason = serializers.CharField(allow_blank=True)
    node_name = serializers.CharField(allow_null=True)
    gpu_model = serializers.CharField(allow_null=True)
    gpu_uuid = serializers.CharField(allow_null=True)
    gpu_simulated = serializers.BooleanField(allow_null=True)
    kind = serializers.CharField(allow_null=True)
    memory_mib = serializers.IntegerField(allow_null=True)
    compute_milli = serializers.IntegerField(allow_null=True)
    enforcement_memory = serializers.CharField(allow_null=True, allow_blank=True)
    enforcement_compute = serializers.CharField(allow_null=True, allow_blank=True)
    memory_used_mib = serializers.IntegerField(allow_null=True)
    memory_peak_mib = serializers.IntegerField(allow_null=True)
    utilisation_percent = serializers.FloatField(allow_null=True)


class TransitionOut(Output):
    at = serializers.DateTimeField()
    from_state = serializers.CharField(allow_blank=True)
    to_state = serializers.CharField()
    event = serializers.CharField()
    actor = serializers.CharField()
    attempt_number = serializers.IntegerField(allow_null=True)
    detail = serializers.CharField(allow_blank=True)


class JobOut(JobRowOut):
    project_id = serializers.CharField()
    env_names = serializers.ListField(child=serializers.CharField())
    time_limit_s = serializers.IntegerField(allow_null=True)
    max_attempts = serializers.IntegerField()
    node_reachable = serializers.BooleanField(allow_null=True)
    metered_seconds = serializers.FloatField()
    gpu_seconds = serializers.FloatField(help_text="seconds of a whole GPU of this model")
    cost = MoneyOut(allow_null=True)
    cost_is_final = serializers.BooleanField()
    attempts = AttemptOut(many=True)
    transitions = TransitionOut(many=True)


class JobPageOut(Output):
    items = JobRowOut(many=True, source="rows")
    next_cursor = serializers.CharField(allow_null=True, source="next_before")


class ArrayOut(Output):
    id = serializers.CharField()
    kind = serializers.ChoiceField(["array"], default="array")
    project = serializers.CharField(source="project_slug")
    size = serializers.IntegerField()
    state = serializers.CharField()
    counts = serializers.DictField(child=serializers.IntegerField())
    submitted_at = serializers.DateTimeField()
