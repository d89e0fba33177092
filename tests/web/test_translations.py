"""Every string of a page is translated, and the catalogue has every string."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted((ROOT / "frontend" / "templates").rglob("*.html"))
#: Names and units that are the same in every language.
SAME = {"UTC", "GPU Commons", "Commons", "English", "MiB", "GiB"}
_NOT_TEXT = re.compile(
    r"{%\s*blocktranslate.*?endblocktranslate\s*%}|{%.*?%}|{{.*?}}|{#.*?#}"
    r"|<(?P<tag>code|pre|style|script)\b.*?</(?P=tag)>|<!--.*?-->|&\w+;",
    re.DOTALL,
)
_TAG = re.compile(r"<[^>]*>", re.DOTALL)
_SHOWN_ATTRIBUTE = re.compile(r'\b(?:aria-label|title|data-label|placeholder|alt)="([^"]*)"')


def _messages():
    path = ROOT / "deploy" / "scripts" / "messages.py"
    spec = importlib.util.spec_from_file_location("messages_of_pages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MESSAGES = _messages()


def untranslated(template):
    text = _NOT_TEXT.sub(" ", template)
    attributes = _SHOWN_ATTRIBUTE.findall(text)
    pieces = [*_TAG.sub("\n", text).splitlines(), *attributes]
    parts = (part for piece in pieces for part in piece.split("·"))
    words = (part.strip(" \t.,:;()|/=–#×-") for part in parts)
    return [word for word in words if re.search("[A-Za-z]{2}", word) and word not in SAME]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_no_text_outside_of_translate_tags(path):
    assert untranslated(path.read_text()) == []


def test_the_check_sees_text_and_attributes():
    assert untranslated('<p title="Hello">{{ x }} there</p>') == ["there", "Hello"]
    assert untranslated('<p>{% translate "Hello" %} <code>make run</code></p>') == []


@pytest.mark.parametrize("path", MESSAGES.catalogues(), ids=lambda path: path.parts[-3])
def test_a_catalogue_is_complete(path):
    """`make messages` adds what is new; a translator fills it in."""
    known = MESSAGES.read(path)
    wanted = {message.id for message in MESSAGES.found() if message.id}

    assert wanted - {message.id for message in known} == set()
    assert [message.id for message in known if message.id and message.id not in wanted] == []
    assert [message.id for message in known if message.fuzzy] == []
    assert [message.id for message in known if not _is_translated(message)] == []


@pytest.mark.parametrize("path", MESSAGES.catalogues(), ids=lambda path: path.parts[-3])
def test_translations_keep_the_placeholders(path):
    for message in MESSAGES.read(path):
        if message.id:
            ids = message.id if isinstance(message.id, tuple) else (message.id,)
            texts = message.string if isinstance(message.string, tuple) else (message.string,)
            for text in texts:
                assert _names(text) == _names(ids[-1]), message.id


def _is_translated(message):
    texts = message.string if isinstance(message.string, tuple) else (message.string,)
    return bool(message.string) and all(texts)


def _names(text):
    return sorted(re.findall(r"%\(\w+\)s", text))


def test_a_person_chooses_the_language(here):
    browser = here.browser("member")

    browser.post("/language", {"language": "zh-hans", "next": "/jobs"})
    page = browser.get("/submit").content.decode()
    browser.post("/language", {"language": "en"})

    assert '<html lang="zh-hans">' in page
    assert "显存" in page
    assert "GPU memory" in browser.get("/submit").content.decode()
