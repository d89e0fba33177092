"""Nodes, GPUs and enrolment."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.serializers.fields import Input, Output, Text


class GpuOut(Output):
    """One device. What was not measured is null, never 0."""

    id = serializers.CharField()
    node_id = serializers.CharField()
    node_name = serializers.CharField()
    uuid = serializers.CharField()
    index = serializers.IntegerField()
    model = serializers.CharField()
    memory_mib = serializers.IntegerField()
    mode = serializers.CharField()
    simulated = serializers.BooleanField()
    healthy = serializers.BooleanField()
    health_reason = serializers.CharField(allow_blank=True)
    compute_leased_milli = serializers.IntegerField()
    memory_leased_mib = serializers.IntegerField()
    utilisation_percent = serializers.FloatField(allow_null=True)
    memory_used_mib = serializers.IntegerField(allow_null=True)


class GpuListOut(Output):
    items = GpuOut(many=True)


class NodeOut(Output):
    id = serializers.CharField()
    name = serializers.CharField()
    state = serializers.CharField()
    drained = serializers.BooleanField(help_text="it gets no new leases; what runs goes on")
    drain_note = serializers.CharField(allow_blank=True)
    isolated = serializers.BooleanField(
        allow_null=True, help_text="each job has its own system user; null: not known yet"
    )
    agent_version = serializers.CharField(allow_blank=True)
    last_seen_at = serializers.DateTimeField(allow_null=True)
    gpus = GpuOut(many=True)


class NodeListOut(Output):
    items = NodeOut(many=True)


class DrainIn(Input):
    drained = serializers.BooleanField(help_text="true: no new leases; false: resumed")
    note = Text(required=False, allow_blank=True, max_length=200, help_text="why, for people")


class LostIn(Input):
    name = Text(max_length=100, help_text="the name of the node, to confirm")
    reason = Text(max_length=500, help_text="how you know that nothing runs there any more")


class LostOut(Output):
    attempts_ended = serializers.IntegerField()


class CodeIn(Input):
    node_name = Text(max_length=100)


class CodeOut(Output):
    code = serializers.CharField(help_text="for one node, once; shown this once")
    node_name = serializers.CharField()


class EnrolIn(Input):
    code = Text(max_length=200)
    node_name = Text(max_length=100)
    address = Text(max_length=200, help_text="https://host:port where the portal reaches the agent")
    csr_pem = Text(max_length=20_000)

    def to_internal_value(self, data: object) -> object:
        """Let fields of newer agents through, as every message between portal and agent does."""
        known = (
            {name: data[name] for name in self.fields if name in data}
            if isinstance(data, dict)
            else data
        )
        return super().to_internal_value(known)


class EnrolOut(Output):
    node_id = serializers.CharField()
    certificate_pem = serializers.CharField()
    ca_pem = serializers.CharField()
