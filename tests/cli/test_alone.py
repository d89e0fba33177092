"""The command line needs nothing of the server."""

import subprocess
import sys

BLOCKED = """
import sys
blocked = ("django", "rest_framework", "celery", "pydantic", "agent", "jobs", "billing", "quotas")
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked or name.startswith(("portal.core", "portal.config")):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import httpx2, portal.cli.main
"""


def test_it_runs_where_no_server_is_installed():
    done = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


def test_help_loads_neither_http_nor_rich():
    script = (
        "import sys, portal.cli.main; "
        "print(sorted({'httpx2', 'rich', 'asyncio'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)

    assert done.stdout == b"[]\n"


def test_help_names_the_exit_codes():
    done = subprocess.run(
        [sys.executable, "-c", "from portal.cli.main import app; app()", "--help"],
        capture_output=True,
        check=True,
        text=True,
    )

    assert "5 wait gave up" in done.stdout
