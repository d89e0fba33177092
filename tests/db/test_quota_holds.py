"""Holds: never above a limit at any level, given back exactly once."""

import pytest

from portal.core.errors import Rejected
from portal.core.ids import new_id
from portal.core.locks import guarded
from quotas.selectors import levels_of, proof_of_holds, queued_limit
from quotas.services.holds import Wanted, hold, hold_all, lock_accounts_of, release, release_all
