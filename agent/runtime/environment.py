"""The environment of a job: what was asked for and what the agent says, nothing of its own."""

from __future__ import annotations

from collections.abc import Mapping

from agent.wire import SliceSpec

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LEASE_VARIABLE = "GPUCOMMONS_LEASE_ID"


def job_environment(
    given: Mapping[str, str],
    *,
    lease_id: str,
    slice_: SliceSpec,
    simulated: bool,
    work: str,
    user: str,
) -> dict[str, str]:
    """Values that the job may set itself come first; those that place it on its GPU win.

    A simulated GPU hides the machine's real ones.
    """
    return {
        "PATH": PATH,
        "HOME": work,
        "TMPDIR": work,
        "USER": user,
        "LOGNAME": user,
        "LANG": "C.UTF-8",
        **given,
        "CUDA_VISIBLE_DEVICES": "" if simulated else slice_.gpu_uuid,
        "NVIDIA_VISIBLE_DEVICES": "void" if simulated else slice_.gpu_uuid,
        LEASE_VARIABLE: lease_id,
        "GPUCOMMONS_GPU_UUID": slice_.gpu_uuid,
        "GPUCOMMONS_MEMORY_MIB": str(slice_.memory_mib),
        "GPUCOMMONS_COMPUTE_MILLI": str(slice_.compute_milli),
    }
