"""Writing many rows with different values: one prepared statement, run once for each row.

`QuerySet.bulk_update` and `Case` build expressions for every row and field, which costs more than
the writing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, models


def save_rows(rows: Sequence[models.Model], fields: Sequence[str]) -> None:
    """Write these fields of rows of one model, as they are in memory: no expressions."""
    if not rows:
        return
    meta = rows[0]._meta
    columns: list[Any] = [meta.get_field(name) for name in fields]
    key: Any = meta.pk
    quote = connection.ops.quote_name
    values = ", ".join(f"{quote(column.column)} = %s" for column in columns)
    table = quote(meta.db_table)
    statement = f"UPDATE {table} SET {values} WHERE {quote(key.column)} = %s"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.executemany(
            statement,
            [
                [
                    column.get_db_prep_save(getattr(row, column.attname), connection)
                    for column in (*columns, key)
                ]
                for row in rows
            ],
        )


def shift_rows(
    model: type[models.Model], fields: Sequence[str], shifts: Mapping[str, Sequence[int]]
) -> None:
    """Add to counters of rows, given by primary key and in its order; CHECKs refuse an excess."""
    quote = connection.ops.quote_name
    columns: list[Any] = [model._meta.get_field(name) for name in fields]
    names = [quote(column.column) for column in columns]
    key: Any = model._meta.pk
    values = ", ".join(f"{name} = {name} + %s" for name in names)
    table = quote(model._meta.db_table)
    statement = f"UPDATE {table} SET {values} WHERE {quote(key.column)} = %s"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.executemany(statement, [[*shift, pk] for pk, shift in sorted(shifts.items())])
