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
    isolated = serializers.BooleanField(
        allow_null=True, help_text="each job has its own system user; null: not known yet"
    )
    agent_version = serializers.CharField(allow_blank=True)
    last_seen_at = serializers.DateTimeField(allow_null=True)
    gpus = GpuOut(many=True)


class NodeListOut(Output):
    items = NodeOut(many=True)


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
