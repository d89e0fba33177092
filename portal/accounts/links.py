"""Secrets of links that work once: 256 random bits; only a keyed digest is kept."""

from __future__ import annotations

import secrets

from django.utils.crypto import salted_hmac

from portal.core.errors import NotFound


def new_secret(purpose: str) -> tuple[str, str]:
    """Give a secret and its digest; one purpose's link is nothing to another."""
    secret = secrets.token_urlsafe(32)
    return secret, digest_of(purpose, secret)


def digest_of(purpose: str, secret: str) -> str:
    return salted_hmac(f"portal.accounts.links.{purpose}", secret, algorithm="sha256").hexdigest()


def link_invalid() -> NotFound:
    """The same for a link that never was, was used, was revoked or is too old."""
    return NotFound(
        "accounts.link_invalid",
        "This link does not work, or not any more.",
        hint="Ask whoever sent it for a new one.",
    )
