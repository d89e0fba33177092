"""The catalogues of the pages' strings: ``compile`` for the server, ``extract`` for translators.

GNU gettext is not needed: Babel reads and writes its formats.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).parents[2]
LOCALE = ROOT / "frontend" / "locale"
#: Babel's names of functions and which arguments are messages.
KEYWORDS = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
}


def catalogues() -> list[Path]:
    return sorted(LOCALE.glob("*/LC_MESSAGES/django.po"))


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file)


def compile_all() -> None:
    for path in catalogues():
        buffer = BytesIO()
        write_mo(buffer, read(path))
        path.with_suffix(".mo").write_bytes(buffer.getvalue())


def found() -> Catalog:
    """Every message of templates and of the code of pages."""
    catalogue = Catalog(charset="utf-8")
    templates = sorted((ROOT / "frontend" / "templates").rglob("*.html"))
    for path in [*templates, *sorted((ROOT / "portal" / "web").rglob("*.py"))]:
        text = path.read_text()
        if path.suffix == ".html":
            lines = templatize(text, origin=str(path)).splitlines()
            text = "\n".join(line.lstrip() for line in lines)
        place = path.relative_to(ROOT).as_posix()
        for _, message, _, context in extract("python", BytesIO(text.encode()), KEYWORDS):
            catalogue.add(message, locations=[(place, 0)], context=context)
    return catalogue


def extract_all() -> None:
    """Bring the catalogues up to date: new messages empty, those that are gone left out."""
    template = found()
    for path in catalogues():
        known = read(path)
        known.update(template, no_fuzzy_matching=True)
        known.obsolete.clear()
        with path.open("wb") as file:
            write_po(file, known, width=100, sort_output=True, include_lineno=False)


if __name__ == "__main__":
    {"compile": compile_all, "extract": extract_all}[sys.argv[1]]()
