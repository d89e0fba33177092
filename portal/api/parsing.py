"""Reading bodies: bounded, UTF-8, one JSON value, no text that a database refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from portal.api.problems import too_large


class StrictJSONParser(BaseParser):
    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        raw = stream.read(most + 1)
        if len(raw) > most:
            raise too_large()
        try:
            value = json.loads(
                raw.decode(), parse_constant=_refuse_constant, object_pairs_hook=_unique
            )
        except RecursionError as error:
            raise ParseError("The body is nested too deeply.") from error
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise ParseError("The body must be a JSON object.")
        return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that stands twice: readers differ in which one they take."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return value
