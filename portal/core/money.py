"""Money: integer micro-units of the one currency of a deployment, never floats."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Money:
    amount_micros: int
    currency: str

    def display(self) -> str:
        """Show at least two decimals and at most six: ``0.25 EUR``, ``0.000008 EUR``."""
        sign = "-" if self.amount_micros < 0 else ""
        whole, micros = divmod(abs(self.amount_micros), 1_000_000)
        decimals = f"{micros:06d}".rstrip("0").ljust(2, "0")
        return f"{sign}{whole}.{decimals} {self.currency}"
