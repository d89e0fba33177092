"""``gpucommons``: submit jobs, follow them and see what they cost, over the REST API alone."""

from __future__ import annotations

import typer

from portal.cli import jobs, overview
from portal.cli.failures import reporting

_HELP = """Submit jobs to shared GPUs, follow them and see what they cost.

GPUCOMMONS_URL names the portal (default http://127.0.0.1:8000), GPUCOMMONS_TOKEN holds an API
token.
A job is named by its id or by its short name, project/number, as in vision/12.

Exit codes: 0 done, job succeeded; 1 job failed; 2 wrong use; 3 job cancelled; 4 job timed out;
5 wait gave up before the job ended; 6 portal not reachable; 7 refused; 8 not signed in.
"""

app = typer.Typer(
    help=_HELP,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_OWN_OPTIONS = {"allow_interspersed_args": False}

app.command(context_settings=_OWN_OPTIONS)(reporting(jobs.submit))
app.command()(reporting(jobs.ps))
app.command()(reporting(jobs.show))
app.command()(reporting(jobs.logs))
app.command()(reporting(jobs.wait))
app.command()(reporting(jobs.cancel))
app.command()(reporting(jobs.hold))
app.command()(reporting(jobs.release))
app.command()(reporting(jobs.rerun))
app.command()(reporting(overview.usage))
app.command()(reporting(overview.projects))
app.command()(reporting(overview.nodes))
