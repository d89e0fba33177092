"""A portal that is put back to yesterday while its node goes on."""

import subprocess
import sys

import pytest

from tests.e2e.jobs import new_witness, read_witness
from tests.e2e.system import ROOT, Refused, eventually

_UNTIL = (
    'echo "start $EPOCHREALTIME" >>"$0"; until [ -e "$0.go" ]; do sleep 0.1; done; '
    'echo "end $EPOCHREALTIME" >>"$0"'
)


def operate(system, *words):
    subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env={**system.environment, "GPUCOMMONS_DATA": str(system.data)},
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )


@pytest.mark.timeout(400)
def test_after_a_restore_no_lease_starts_twice_and_none_runs_unknown(make_system):
    system = make_system().start()
    rest = system.rest()
    ended = rest.submit(["true"], compute_milli=200)["id"]
    rest.wait_end(ended)
    before = rest.job(ended)
    known, unknown = new_witness(system.witness), new_witness(system.witness)
    running = rest.submit(["bash", "-c", _UNTIL, str(known)], compute_milli=200)["id"]
    rest.wait_state(running, "RUNNING")
    file = system.folder / "backup.tar.gz"
    operate(system, "backup", str(file))
    later = rest.submit(["bash", "-c", _UNTIL, str(unknown)], compute_milli=200)["id"]
    rest.wait_state(later, "RUNNING")
    system.kill_portal()

    operate(system, "restore", "--yes", str(file))
    system.start()

    eventually(lambda: len(system.supervisors()) == 1, "the job that is not known is ended")
    assert rest.job(ended) == before
    with pytest.raises(Refused, match="404"):
        rest.job(later)
    known.with_name(f"{known.name}.go").touch()
    assert rest.wait_end(running)["state"] == "SUCCEEDED"
    system.wait_at_rest()
    assert [len(moments) for moments in (read_witness(known).starts, read_witness(known).ends)] == [
        1,
        1,
    ]
    assert (len(read_witness(unknown).starts), read_witness(unknown).ends) == (1, ())
