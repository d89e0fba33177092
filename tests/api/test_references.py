"""The generated documents say what the code does."""

from pathlib import Path

from django.core.management import call_command

from portal.ops.management.commands.error_reference import reference

DOCUMENTS = Path(__file__).resolve().parents[2] / "docs" / "reference"


def test_the_description_of_the_api_is_current(tmp_path):
    call_command(
        "spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "openapi.yaml")
    )

    assert (tmp_path / "openapi.yaml").read_text() == (DOCUMENTS / "openapi.yaml").read_text()


def test_the_reference_of_errors_is_current():
    assert reference() == (DOCUMENTS / "errors.md").read_text()
