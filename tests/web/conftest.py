import pytest

import portal.celery  # noqa: F401  (as the web process does)
from tests.world import FAST_HASHERS, World, world


@pytest.fixture
def here(db, settings) -> World:
    settings.PASSWORD_HASHERS = FAST_HASHERS
    return world()


@pytest.fixture
def here_for_real(transactional_db, settings) -> World:
    """The same where transactions really commit and roll back."""
    settings.PASSWORD_HASHERS = FAST_HASHERS
    return world()
