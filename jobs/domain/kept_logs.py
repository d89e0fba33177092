"""Which parts of a log are kept, and finding lines in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A line that was found: where it begins, in bytes, and its text."""

    offset: int
    text: str


def parts(size: int, most: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Of a log of ``size`` bytes, the first and the last part that are kept: [from, to)."""
    if size <= most:
        return (0, size), (size, size)
    head = most // 2
    return (0, head), (size - (most - head), size)


def gap_note(head_end: int, tail_start: int) -> bytes:
    """What stands where bytes are missing; empty if none are."""
    if tail_start <= head_end:
        return b""
    return f"\n[{tail_start - head_end} bytes of this log were not kept]\n".encode()


def find_lines(
    chunks: Iterable[bytes], wanted: str, *, most: int, longest: int = 2000
) -> Iterator[Line]:
    """The first ``most`` lines that contain a text, without regard to case."""
    needle = wanted.casefold()
    found = 0
    for offset, line in _lines(chunks):
        text = line.decode(errors="replace").rstrip("\r\n")
        if needle in text.casefold():
            yield Line(offset, text[:longest])
            found += 1
            if found >= most:
                return


def _lines(chunks: Iterable[bytes], longest: int = 1_048_576) -> Iterator[tuple[int, bytes]]:
    """Lines with their offsets; one that is longer than ``longest`` is cut into several."""
    offset, rest = 0, b""
    for chunk in chunks:
        rest += chunk
        *whole, rest = rest.split(b"\n")
        for line in whole:
            yield offset, line
            offset += len(line) + 1
        if len(rest) > longest:
            yield offset, rest
            offset, rest = offset + len(rest), b""
    if rest:
        yield offset, rest
