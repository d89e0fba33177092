import pytest

from tests.world import FAST_HASHERS, World, world


@pytest.fixture
def here(db, settings) -> World:
    settings.PASSWORD_HASHERS = FAST_HASHERS
    return world()
