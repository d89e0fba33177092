"""Parts of addresses, ``<id:...>`` and ``<job:...>``. What a database refuses does not match."""

from __future__ import annotations

from django.urls import register_converter


class _Text:
    regex: str

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class IdConverter(_Text):
    """An id or a slug."""

    regex = "[-A-Za-z0-9_]{1,50}"


class JobRefConverter(_Text):
    """The id of a job, or its short name ``project/number``."""

    regex = "[-A-Za-z0-9_]{1,50}(?:/[0-9]{1,9})?"


class NameConverter(_Text):
    """The id or the name of a user: anything printable without a slash."""

    regex = r"[^/\x00-\x1f\x7f]{1,150}"


register_converter(NameConverter, "name")
register_converter(IdConverter, "id")
register_converter(JobRefConverter, "job")
