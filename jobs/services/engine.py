"""The engine of this process, made once."""

from __future__ import annotations

from functools import cache

from jobs.engines.agent import AgentEngine
from jobs.engines.base import Engine
from portal.config import config
from portal.core.locks import assert_no_transaction
from portal.fleet.pki import client_ssl_context


@cache
def agent_engine() -> Engine:
    return AgentEngine(
        client_ssl_context,
        timeout_s=config.agent_timeout_s,
        before_call=assert_no_transaction,
    )
