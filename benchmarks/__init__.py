"""Programs that measure. Each prints its figures as one JSON line last; nothing imports them."""
