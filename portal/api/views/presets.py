"""Templates of requests and secrets of a project."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.selectors.presets import secret_views, template_views
from jobs.services.presets import delete_secret, delete_template, save_template, set_secret
from portal.api.base import View
from portal.api.schema import problems
from portal.api.serializers.presets import (
    NewTemplateIn,
    SecretListOut,
    SecretValueIn,
    TemplateListOut,
)
from portal.core.clock import utc_now


class Templates(View):
    @extend_schema(
        operation_id="templates_list",
        responses={200: TemplateListOut, **problems(401, 403, 404)},
    )
    def get(self, request: Request, project: str) -> Response:
        """List the project's templates."""
        return Response(TemplateListOut({"items": template_views(self.principal, project)}).data)

    @extend_schema(
        operation_id="templates_save",
        request=NewTemplateIn,
        responses={201: TemplateListOut, **problems(400, 401, 403, 404, 409, 413, 415, 422, 503)},
    )
    def post(self, request: Request, project: str) -> Response:
        """Save fields of a request under a name; a submission may then name the template."""
        body = self.body(NewTemplateIn)
        save_template(
            principal=self.principal,
            project=project,
            name=body["name"],
            fields={key: value for key, value in body["request"].items() if value is not None},
            now=utc_now(),
        )
        items = template_views(self.principal, project)
        return Response(TemplateListOut({"items": items}).data, status=201)


class OneTemplate(View):
    @extend_schema(
        operation_id="templates_delete",
        request=None,
        responses={204: None, **problems(401, 403, 404, 503)},
    )
    def delete(self, request: Request, project: str, name: str) -> Response:
        """Delete a template. Jobs that were submitted with it are not touched."""
        delete_template(principal=self.principal, project=project, name=name, now=utc_now())
        return Response(status=204)


class Secrets(View):
    @extend_schema(
        operation_id="secrets_list", responses={200: SecretListOut, **problems(401, 403, 404)}
    )
    def get(self, request: Request, project: str) -> Response:
        """List the names of the project's secrets. Values are never shown."""
        return Response(SecretListOut({"items": secret_views(self.principal, project)}).data)


class OneSecret(View):
    @extend_schema(
        operation_id="secrets_set",
        request=SecretValueIn,
        responses={204: None, **problems(400, 401, 403, 404, 409, 413, 415, 422, 503)},
    )
    def put(self, request: Request, project: str, name: str) -> Response:
        """Set the value of a secret, which jobs that name it find in their environment."""
        body = self.body(SecretValueIn)
        set_secret(
            principal=self.principal,
            project=project,
            name=name,
            value=body["value"],
            now=utc_now(),
        )
        return Response(status=204)

    @extend_schema(
        operation_id="secrets_delete",
        request=None,
        responses={204: None, **problems(401, 403, 404, 503)},
    )
    def delete(self, request: Request, project: str, name: str) -> Response:
        """Forget a secret. Waiting jobs that want it fail when they are to start."""
        delete_secret(principal=self.principal, project=project, name=name, now=utc_now())
        return Response(status=204)
