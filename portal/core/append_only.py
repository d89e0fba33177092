"""A migration operation: the database refuses to change or delete the rows of a table."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

_SQLITE = """
CREATE TRIGGER {table}_no_{event} BEFORE {event} ON {table}
BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END
"""
_POSTGRESQL_FUNCTION = """
CREATE FUNCTION {table}_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '{table} is append-only' USING ERRCODE = 'restrict_violation'; END $$
"""
_POSTGRESQL_TRIGGER = """
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION {table}_append_only()
"""


class AppendOnly(Operation):
    """Refuse UPDATE and DELETE on a model's table, by triggers on SQLite and PostgreSQL."""

    reduces_to_sql = True
    reversible = True

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """The models stay as they are."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self._table(app_label, to_state)
        for statement in _statements(schema_editor.connection.vendor):
            schema_editor.execute(statement.format(table=table), params=None)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self._table(app_label, to_state)
        if schema_editor.connection.vendor == "sqlite":
            for event in ("update", "delete"):
                schema_editor.execute(f"DROP TRIGGER {table}_no_{event}")
        else:
            schema_editor.execute(f"DROP FUNCTION {table}_append_only() CASCADE")

    def describe(self) -> str:
        return f"Make {self.model_name} append-only"

    @property
    def migration_name_fragment(self) -> str:
        return f"{self.model_name.lower()}_append_only"

    def _table(self, app_label: str, state: ProjectState) -> str:
        model: Any = state.apps.get_model(app_label, self.model_name)
        return str(model._meta.db_table)


def _statements(vendor: str) -> list[str]:
    if vendor == "sqlite":
        return [_SQLITE.replace("{event}", event) for event in ("update", "delete")]
    return [_POSTGRESQL_FUNCTION, _POSTGRESQL_TRIGGER]
