"""Nodes and GPUs, and how a node joins."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from agent.wire import EnrolmentRequest
from jobs.services.nodes import declare_lost_by_name
from portal.accounts.access import access_platform
from portal.accounts.roles import Scope
from portal.api.base import View
from portal.api.schema import problems
from portal.api.serializers.fleet import (
    CodeIn,
    CodeOut,
    DrainIn,
    EnrolIn,
    EnrolOut,
    GpuListOut,
    LostIn,
    LostOut,
    NodeListOut,
    NodeOut,
)
from portal.core.clock import utc_now
from portal.fleet.enrolment import enrol, issue_code
from portal.fleet.selectors import fleet_view, node_view
from portal.fleet.services import set_drained


class Nodes(View):
    @extend_schema(operation_id="nodes_list", responses={200: NodeListOut, **problems(401, 403)})
    def get(self, request: Request) -> Response:
        """List the nodes with their GPUs."""
        access_platform(self.principal, need=Scope.FLEET_READ)
        return Response(NodeListOut({"items": fleet_view()}).data)


class DrainNode(View):
    @extend_schema(
        operation_id="nodes_drain",
        request=DrainIn,
        responses={200: NodeOut, **problems(400, 401, 403, 404, 422, 503)},
    )
    def put(self, request: Request, node_id: str) -> Response:
        """Give a node no new leases, or again; running jobs go on."""
        principal = self.principal
        access_platform(principal, need=Scope.FLEET_ADMIN)
        body = self.body(DrainIn)
        set_drained(
            actor=principal.actor,
            node_id=node_id,
            drained=body["drained"],
            note=body.get("note", ""),
            now=utc_now(),
        )
        return Response(NodeOut(node_view(node_id)).data)


class LostNode(View):
    @extend_schema(
        operation_id="nodes_declare_lost",
        request=LostIn,
        responses={200: LostOut, **problems(400, 401, 403, 404, 422, 503)},
    )
    def post(self, request: Request, node_id: str) -> Response:
        """Declare that nothing runs on a node any more: its jobs end or start elsewhere."""
        principal = self.principal
        access_platform(principal, need=Scope.FLEET_ADMIN)
        body = self.body(LostIn)
        ended = declare_lost_by_name(
            actor=principal.actor,
            node_id=node_id,
            name=body["name"],
            reason=body["reason"],
            now=utc_now(),
        )
        return Response({"attempts_ended": ended})


class Gpus(View):
    @extend_schema(operation_id="gpus_list", responses={200: GpuListOut, **problems(401, 403)})
    def get(self, request: Request) -> Response:
        """List the GPUs of all nodes."""
        access_platform(self.principal, need=Scope.FLEET_READ)
        return Response(
            GpuListOut({"items": [gpu for node in fleet_view() for gpu in node.gpus]}).data
        )


class EnrolmentCodes(View):
    @extend_schema(
        operation_id="nodes_issue_code",
        request=CodeIn,
        responses={201: CodeOut, **problems(400, 401, 403, 409, 422)},
    )
    def post(self, request: Request) -> Response:
        """Issue a code with which one node may enrol once."""
        principal = self.principal
        access_platform(principal, need=Scope.FLEET_ADMIN)
        name = self.body(CodeIn)["node_name"]
        code = issue_code(actor=principal.actor, node_name=name, now=utc_now())
        return Response(
            {"code": code, "node_name": name}, 201, headers={"Cache-Control": "no-store"}
        )


class Enrol(View):
    authentication_classes = ()
    permission_classes = ()

    @extend_schema(
        operation_id="nodes_enrol",
        request=EnrolIn,
        responses={201: EnrolOut, **problems(400, 409, 422)},
        auth=[],
    )
    def post(self, request: Request) -> Response:
        """Enrol a node: a one-time code and a signing request for a certificate."""
        answer = enrol(EnrolmentRequest(**self.body(EnrolIn)), utc_now())
        return Response(answer.model_dump(), status=201)
