"""Texts that lie encrypted in the database: Fernet, with keys derived from the signing key.

Each purpose has a key of its own, so that a sealed text opens only where it was meant for.
"""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unreadable(Exception):
    """The text was sealed for another purpose or with another signing key."""


def seal(text: str, purpose: str) -> str:
    return _box(purpose).encrypt(text.encode()).decode()


def unseal(sealed: str, purpose: str) -> str:
    """Open what was sealed for this purpose. Raises `Unreadable`."""
    try:
        return _box(purpose).decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise Unreadable(purpose) from error


def _box(purpose: str) -> Fernet:
    derived = HKDF(SHA256(), length=32, salt=b"gpucommons.sealing", info=purpose.encode())
    return Fernet(base64.urlsafe_b64encode(derived.derive(settings.SECRET_KEY.encode())))
