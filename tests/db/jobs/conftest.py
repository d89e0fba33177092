import pytest

from tests.factories import Desk


@pytest.fixture
def desk(transactional_db):
    return Desk()
