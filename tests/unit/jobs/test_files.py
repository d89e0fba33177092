"""Which files a submission and an order may bring."""

import base64
import os

import pytest

from agent.runtime import files as agent_files
from agent.wire import FileSpec, ProcessSpec
from jobs.domain.files import MAX_FILES_BYTES, JobFile, fault

HOSTILE = ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", ".", "a\0b", "a\nb", "x" * 256]


def spec(path, content=b"x", mode=0o644):
    return FileSpec(path=path, content_base64=base64.b64encode(content).decode(), mode=mode)


@pytest.mark.parametrize("path", [*HOSTILE, "/".join(["d" * 200] * 6)])
def test_a_path_that_leaves_the_folder_is_refused_at_both_ends(path):
    assert "no relative path" in str(fault([JobFile(path, b"")]))
    with pytest.raises(agent_files.UnsafeFiles):
        agent_files.check([spec(path)])


@pytest.mark.parametrize(
    "named",
    [
        [("a", b""), ("a", b"")],
        [("a", b""), ("a/b", b"")],
        [("a", b"x" * MAX_FILES_BYTES), ("b", b"x")],
        [(str(number), b"") for number in range(1001)],
    ],
)
def test_files_that_clash_or_are_too_many_are_refused_at_both_ends(named):
    assert fault([JobFile(path, content) for path, content in named])
    with pytest.raises(agent_files.UnsafeFiles):
        agent_files.check([spec(path, content) for path, content in named])


def test_plain_files_are_taken_at_both_ends():
    named = [("run.sh", b"x" * MAX_FILES_BYTES), ("src/ä b/main.py", b""), ("..x/.hidden", b"")]
    assert fault([JobFile(path, content) for path, content in named]) is None
    agent_files.check([spec(path, content) for path, content in named])


def test_what_is_no_base64_is_refused():
    with pytest.raises(agent_files.UnsafeFiles):
        agent_files.check([FileSpec(path="a", content_base64="x?")])


def test_an_order_without_files_reads_as_before_there_were_any():
    assert "files" not in ProcessSpec(argv=["true"]).model_dump_json()


def test_files_are_written_with_their_modes_and_never_over_others(tmp_path):
    agent_files.write(tmp_path, [spec("run.sh", b"ls", 0o755), spec("a/b/c", b"1")], None)
    assert (tmp_path / "run.sh").read_bytes() == b"ls"
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "a/b/c").read_bytes() == b"1"
    os.symlink("/nowhere/at/all", tmp_path / "link")
    for path in ("run.sh", "link"):
        with pytest.raises(FileExistsError):
            agent_files.write(tmp_path, [spec(path)], None)
