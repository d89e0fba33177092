"""A CUDA program that takes a stated amount of GPU memory and multiplies matrices for a while.

`benchmarks.real_gpu` hands its text to an interpreter that has torch or cupy. It prints one JSON
line when it begins and one when it ends.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

SIDE = 8192
GIB = 1024**3


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    library, fill, multiply, wait = _library()
    held = fill(int(options.gib * GIB))
    multiply()
    wait()
    _tell(
        event="begin",
        library=library,
        uid=os.getuid(),
        visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
        allocated_mib=held // 2**20,
    )
    began = time.monotonic()
    products = 0
    while time.monotonic() - began < options.seconds:
        for _ in range(4):
            multiply()
        wait()
        products += 4
    took = time.monotonic() - began
    _tell(
        event="end",
        products=products,
        seconds=round(took, 3),
        tflops=round(2 * SIDE**3 * products / took / 1e12, 1),
    )
    return 0


def _tell(**values: Any) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


_Library = tuple[str, Callable[[int], int], Callable[[], Any], Callable[[], Any]]


def _library() -> _Library:
    """Name, how to fill memory (gives bytes), one product, and waiting for the device."""
    try:
        return _torch()
    except ImportError:
        return _cupy()


def _torch() -> _Library:
    torch = importlib.import_module("torch")
    matrix = torch.rand((SIDE, SIDE), device="cuda", dtype=torch.float16)
    product = torch.empty_like(matrix)
    kept = []

    def fill(size: int) -> int:
        rest = size - matrix.nbytes - product.nbytes
        kept.append(torch.ones(max(rest, 1), device="cuda", dtype=torch.uint8))
        return int(torch.cuda.memory_allocated())

    name = f"torch {torch.__version__}"
    return name, fill, lambda: torch.matmul(matrix, matrix, out=product), torch.cuda.synchronize


def _cupy() -> _Library:
    cupy = importlib.import_module("cupy")
    matrix = cupy.random.rand(SIDE, SIDE, dtype=cupy.float32).astype(cupy.float16)
    product = cupy.empty_like(matrix)
    kept = []

    def fill(size: int) -> int:
        rest = size - matrix.nbytes - product.nbytes
        kept.append(cupy.ones(max(rest, 1), dtype=cupy.uint8))
        return int(matrix.nbytes + product.nbytes + kept[0].nbytes)

    def multiply() -> None:
        cupy.matmul(matrix, matrix, out=product)

    return f"cupy {cupy.__version__}", fill, multiply, cupy.cuda.Device().synchronize


if __name__ == "__main__":
    sys.exit(main())
