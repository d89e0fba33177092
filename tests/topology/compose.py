"""`deploy/compose/compose.yaml` as it is run here: the same commands, without containers.

Only places differ: hosts are loopback, ports are free ones, volumes and secrets are folders.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "compose" / "compose.yaml"
_VARIABLE = re.compile(r"\$\{\w+:-([^}]*)\}")
_WEB, _REDIS, _AGENT = 8000, 6379, 9443


def services() -> dict[str, dict[str, Any]]:
    """What the file says of each service, with its merges resolved."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["services"]
    return found


@dataclass(frozen=True)
class Command:
    words: list[str]
    environment: dict[str, str]


@dataclass(frozen=True)
class Places:
    """Where the services are here: a port for each that listens, one folder for all."""

    folder: Path
    database_url: str
    ports: Mapping[str, int]

    def volume(self, name: str) -> Path:
        return self.folder / "volumes" / name

    def secret(self, name: str) -> Path:
        return self.folder / "secrets" / name

    def command(self, name: str) -> Command:
        """The service's command and environment, translated word by word."""
        service = services()[name]
        mounts = self._mounts(name, service)
        environment = {
            variable: self._translated(name, str(value), mounts)
            for variable, value in service.get("environment", {}).items()
        }
        if "GPUCOMMONS_DATABASE_URL" in environment:
            environment["GPUCOMMONS_DATABASE_URL"] = self.database_url
        program, *words = [self._translated(name, word, mounts) for word in service["command"]]
        if name == "redis":
            words += ["--port", str(self.ports["redis"]), "--bind", "127.0.0.1"]
            return Command([program, *words, "--dir", str(mounts["/data"])], environment)
        found = (
            sys.executable if program == "python" else str(Path(sys.executable).parent / program)
        )
        return Command([found, *words], environment)

    def _mounts(self, name: str, service: Mapping[str, Any]) -> dict[str, Path]:
        volumes = [volume.split(":") for volume in service.get("volumes", [])]
        own = [place.split(":")[0] for place in service.get("tmpfs", [])]
        return {
            **{place: self.volume(volume) for volume, place in volumes},
            **{place: self.folder / "own" / name / place.strip("/") for place in own},
            "/run/secrets": self.folder / "secrets",
        }

    def _translated(self, name: str, text: str, mounts: Mapping[str, Path]) -> str:
        text = _VARIABLE.sub(r"\1", text)
        for service, port in self.ports.items():
            inside = {"web": _WEB, "redis": _REDIS}.get(service, _AGENT)
            text = text.replace(f"{service}:{inside}", f"127.0.0.1:{port}")
        if name in self.ports:
            text = text.replace(f"0.0.0.0:{_AGENT}", f"127.0.0.1:{self.ports[name]}")
            text = text.replace(f"--port={_WEB}", f"--port={self.ports[name]}")
            text = text.replace("--host=0.0.0.0", "--host=127.0.0.1")
        head, equals, path = text.rpartition("=")
        for place, folder in mounts.items():
            if path == place or path.startswith(f"{place}/"):
                return f"{head}{equals}{folder}{path.removeprefix(place)}"
        return text
