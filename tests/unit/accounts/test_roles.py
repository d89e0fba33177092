"""Roles give scopes; tokens only narrow them."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.accounts.access import Principal, tenant_ids_of_path
from portal.accounts.roles import SCOPES_OF, Role, Scope

scopes = st.frozensets(st.sampled_from(Scope))


def test_each_role_gives_more_than_the_one_before():
    line = [SCOPES_OF[role] for role in Role]

    assert all(less < more for less, more in itertools.pairwise(line))


@pytest.mark.parametrize("role", Role)
def test_no_role_of_a_tenant_gives_the_fleet(role):
    assert not SCOPES_OF[role] & {Scope.FLEET_ADMIN}


@given(scopes, scopes)
def test_a_token_never_widens(of_role, of_token):
    narrowed = Principal("u", "ada", False, of_token).narrowed(of_role)

    assert narrowed == of_role & of_token


@given(scopes)
def test_a_session_narrows_nothing(of_role):
    assert Principal("u", "ada", False).narrowed(of_role) == of_role


def test_a_path_lists_tenants_from_the_root():
    assert tenant_ids_of_path("/acme/research/") == ("acme", "research")
