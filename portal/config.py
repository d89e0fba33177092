"""The configuration of the portal: the only module that reads the environment.

Every value is set by ``GPUCOMMONS_<NAME>``. Nothing set means the embedded default: SQLite, the
in-process broker and a data folder ``var`` beside ``manage.py``.
"""

from __future__ import annotations

import secrets
from functools import cached_property
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

ROOT = Path(__file__).resolve().parent.parent


class Config(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="GPUCOMMONS_", frozen=True, extra="ignore")

    data: Path = Field(default=ROOT / "var", description="folder of everything that must last")
    database_url: str = Field(default="", description="postgresql://...; empty: SQLite in data")
    database_password_file: Path | None = Field(
        default=None, description="file with the password, so that database_url needs none"
    )
    redis_url: str = Field(default="", description="broker, cache and hints; empty: in-process")
    secret_key_file: Path | None = Field(default=None, description="default: data/secret_key")
    debug: bool = Field(
        default=False, description="show errors in the browser; never in production"
    )
    public_url: str = Field(default="http://127.0.0.1:8000", description="how browsers reach us")
    allowed_hosts: list[str] = Field(
        default_factory=lambda: ["127.0.0.1", "localhost", "[::1]"],
        description="names by which requests may call the portal, as a JSON list",
    )
    currency: str = Field(default="EUR", description="of every price; fixed once one is published")
    log_level: str = Field(default="INFO", description="DEBUG, INFO, WARNING or ERROR")
    agent_timeout_s: float = Field(default=5.0, gt=0, description="deadline of a call to an agent")
    reconcile_interval_s: float = Field(
        default=5.0, gt=0, description="how often each node is compared with what it should run"
    )
    unreachable_after_s: float = Field(
        default=15.0, gt=0, description="silence after which nothing is placed on a node"
    )
    worker_threads: int = Field(default=6, ge=1, description="of the worker inside manage.py up")
    log_storage_url: str = Field(
        default="", description="s3://bucket/prefix by django-storages; empty: data/logs"
    )
    log_keep_mib: int = Field(default=64, ge=1, description="of longer logs both ends are kept")
    crash_points: bool = Field(default=False, description="tests only: obey data/crash_at")

    @cached_property
    def embedded(self) -> bool:
        return not self.redis_url

    def secret_key(self) -> str:
        """Read the signing key; the embedded default makes one on first use, mode 0600."""
        path = self.secret_key_file or self.data / "secret_key"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial = path.with_suffix(f".{secrets.token_hex(4)}")
            partial.touch(mode=0o600)
            partial.write_text(secrets.token_urlsafe(48))
            try:
                path.hardlink_to(partial)
            except FileExistsError:
                pass
            finally:
                partial.unlink()
        return path.read_text().strip()

    def database_password(self) -> str | None:
        """The content of the file, or None when there is none: then the address has it."""
        path = self.database_password_file
        return path.read_text().strip() if path else None


config = Config()
