"""Which parts of a log are kept, and finding lines in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.domain.kept_logs import Line, find_lines, gap_note, parts


@given(size=st.integers(0, 10**9), most=st.integers(1, 10**6))
def test_both_ends_are_kept_and_no_more_than_allowed(size, most):
    (begin, head_end), (tail_start, end) = parts(size, most)
    assert (begin, end) == (0, size)
    assert head_end <= tail_start
    assert head_end + end - tail_start == min(size, most)


def test_a_gap_says_how_much_is_missing():
    assert gap_note(5, 5) == b""
    assert b"[15 bytes of this log were not kept]" in gap_note(5, 20)


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 100])
def test_lines_are_found_wherever_chunks_are_cut(cut):
    text = "epoch 1\r\nLoss ä\nepoch 2\n\nlast loss".encode()
    chunks = [text[at : at + cut] for at in range(0, len(text), cut)]
    assert list(find_lines(chunks, "LOSS", most=9)) == [Line(9, "Loss ä"), Line(26, "last loss")]
    assert list(find_lines(chunks, "epoch", most=1)) == [Line(0, "epoch 1")]
    assert list(find_lines([], "x", most=1)) == []
