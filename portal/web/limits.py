"""How often a secret may be guessed: wrong tries are counted in the cache for some minutes."""

from __future__ import annotations

import hashlib

from django.core.cache import cache

TRIES = 8
WITHIN_S = 300


class Guesses:
    """Wrong tries of one kind, told apart by what is guessed at (a name, an address, a user)."""

    def __init__(self, kind: str, *parts: str) -> None:
        text = "\0".join(parts).encode(errors="replace")
        self._key = f"{kind}:{hashlib.sha256(text).hexdigest()}"

    @property
    def spent(self) -> bool:
        return int(cache.get(self._key, 0)) >= TRIES

    def wrong(self) -> None:
        if not cache.add(self._key, 1, WITHIN_S):
            cache.incr(self._key)

    def right(self) -> None:
        cache.delete(self._key)
