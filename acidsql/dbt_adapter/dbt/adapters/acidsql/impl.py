"""The adapter: what dbt's macros ask Python for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dbt.adapters.acidsql.column import AcidsqlColumn, stored_type
from dbt.adapters.acidsql.connections import AcidsqlConnectionManager
from dbt.adapters.acidsql.python_models import run_python_model
from dbt.adapters.acidsql.relation import AcidsqlRelation, quoted_name
from dbt.adapters.base import BaseRelation
from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.meta import available
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.relation import RelationConfig, RelationType
from dbt.adapters.spark.impl import SparkAdapter, SparkConfig
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from acidsql.storage.columns import string_literal

if TYPE_CHECKING:
    import agate

_ENFORCED, _INFORMATION = ConstraintSupport.ENFORCED, ConstraintSupport.NOT_ENFORCED


@dataclass
class AcidsqlConfig(SparkConfig):
    """The configs of a model that only this adapter, or dbt-spark's, knows."""

    file_format: str | None = None  # type: ignore[assignment]
    tblproperties: dict[str, str] | None = None


class AcidsqlAdapter(SparkAdapter):
    """Runs dbt's models as acidsql's statements."""

    Relation = AcidsqlRelation
    Column = AcidsqlColumn
    ConnectionManager = AcidsqlConnectionManager
    AdapterSpecificConfigs = AcidsqlConfig

    CONSTRAINT_SUPPORT = {
        ConstraintType.check: _ENFORCED,
        ConstraintType.not_null: _ENFORCED,
        ConstraintType.unique: _INFORMATION,
        ConstraintType.primary_key: _INFORMATION,
        ConstraintType.foreign_key: _INFORMATION,
    }
    # Each batch of a microbatch model locks the table while it replaces its rows.
    _capabilities = CapabilityDict(
        {Capability.MicrobatchConcurrency: CapabilitySupport(support=Support.Full)}
    )

    @classmethod
    def type(cls) -> str:
        return "acidsql"

    @classmethod
    def quote(cls, identifier: str) -> str:
        return quoted_name(identifier)

    @available
    def quote_string(self, text: str) -> str:
        """Return a text as a string literal of SQL."""
        return string_literal(text)

    @available
    def column_definition(self, column: dict[str, Any], has_comment: bool) -> str:
        """Return SQL of a column of a contract, as CREATE TABLE takes it: with its constraints and,
        if wanted, its description as the comment."""
        rendered = [
            self.render_column_constraint(constraint)
            for raw in column.get("constraints") or []
            for constraint in [self._parse_column_constraint(raw)]
            if self.process_parsed_constraint(constraint, self.render_column_constraint)
        ]
        # NOT NULL stands before the comment, as part of the column; the others stand behind.
        required = [sql for sql in rendered if sql and sql.startswith("not null")]
        behind = [sql for sql in rendered if sql and not sql.startswith("not null")]
        words = [
            quoted_name(column["name"].strip("`")),
            stored_type(column["data_type"]),
            *required,
        ]
        if has_comment and column.get("description"):
            words += ["comment", self.quote_string(column["description"])]
        return " ".join([*words, *behind])

    @available
    def valid_incremental_strategies(self) -> list[str]:
        return ["append", "merge", "delete+insert", "insert_overwrite", "microbatch"]

    # ── transactions ─────────────────────────────────────────────────────────────────────────

    @available.parse_none
    def begin_transaction(self) -> None:
        """Let the next statements of this connection be one transaction."""
        with self.connections.exception_handler("BEGIN"):
            self._handle.begin()

    @available.parse_none
    def commit_transaction(self) -> None:
        """Commit the connection's transaction. If dbt fails before, closing the connection rolls it
        back."""
        with self.connections.exception_handler("COMMIT"):
            self._handle.commit()

    @property
    def _handle(self) -> Any:
        return self.connections.get_thread_connection().handle

    # ── tables, views and their columns ──────────────────────────────────────────────────────

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Return the tables and views of a schema, those of acidsql and Spark's; [] if there is no
        such schema."""
        place = quoted_name(str(schema_relation.schema))
        try:
            tables = self._rows_of(f"SHOW TABLES IN {place}")
            views = self._rows_of(f"SHOW VIEWS IN {place}")
        except DbtDatabaseError as error:
            if "SCHEMA_NOT_FOUND" in str(error):
                return []
            raise
        view_names = {name for _, name, *_ in views}
        return [
            self.Relation.create(
                schema=schema_relation.schema,
                identifier=name,
                type=RelationType.View if name in view_names else RelationType.Table,
            )
            for _, name, is_temporary, *_ in tables
            if not is_temporary
        ]

    def get_columns_in_relation(self, relation: BaseRelation) -> list[AcidsqlColumn]:
        """Return the columns of a table, a view or a temporary view, partition columns last; [] if
        there is none of this name."""
        try:
            rows = self._rows_of(f"DESCRIBE {relation.render()}")
        except DbtDatabaseError as error:
            if "TABLE_OR_VIEW_NOT_FOUND" in str(error):
                return []
            raise
        return [
            AcidsqlColumn(column=name.lower(), dtype=stored_type(dtype))
            for name, dtype, _ in _columns_among(rows)
        ]

    def check_schema_exists(self, database: str, schema: str) -> bool:
        names = {name.lower() for name, *_ in self._rows_of("SHOW DATABASES")}
        return schema.lower() in names

    def _get_columns_for_catalog(self, relation: BaseRelation) -> Iterable[dict[str, Any]]:
        """Yield the columns of a table or view for ``dbt docs generate``, with comments and, after
        ANALYZE, the numbers of bytes and rows."""
        rows = self._rows_of(f"DESCRIBE EXTENDED {relation.render()}")
        facts = _facts_among(rows)
        statistics = self.Column.convert_table_stats(facts.get("Statistics"))
        for index, (name, dtype, comment) in enumerate(_columns_among(rows), 1):
            yield {
                "table_database": None,
                "table_schema": relation.schema,
                "table_name": relation.identifier,
                "table_type": str(relation.type),
                "table_comment": facts.get("Comment") or None,
                "table_owner": facts.get("Owner") or None,
                "column_name": name,
                "column_index": index,
                "column_type": stored_type(dtype),
                "column_comment": comment or None,
                **statistics,
            }

    def _rows_of(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows."""
        _, cursor = self.connections.add_query(sql, auto_begin=False)
        with self.connections.exception_handler(sql):
            return list(cursor.fetchall())

    # ── seeds and Python models ──────────────────────────────────────────────────────────────

    @available.parse_none
    def create_table_of_rows(
        self, statement: str, agate_table: agate.Table, types: dict[str, str]
    ) -> None:
        """Run a ``CREATE TABLE … AS`` whose rows are a seed's.

        Args:
            statement: The statement up to AS.
            agate_table: The seed's rows.
            types: The type of each column, by its name, in the table's order.
        """
        texts = [tuple(map(_as_text, row)) for row in agate_table.rows]
        names = [f"c{number}" for number in range(len(types))]
        schema = ", ".join(f"{name} string" for name in names)
        rows = self._handle.session.spark.createDataFrame(texts, schema or "c0 string")
        columns = ",\n  ".join(
            f"cast({name} as {dtype}) as {quoted_name(column)}"
            for name, (column, dtype) in zip(names, types.items(), strict=True)
        )
        sql = f"{statement} as\nselect\n  {columns}\nfrom {{seed_rows}}"
        with self.connections.exception_handler(sql):
            self._handle.execute_with_frames(sql, {"seed_rows": rows})

    @available.parse_none
    def submit_python_job(
        self, parsed_model: dict[str, Any], compiled_code: str
    ) -> AdapterResponse:
        """Run a Python model in dbt's own process, in the session of its connection."""
        handle = self._handle
        with self.connections.exception_handler(compiled_code):
            run_python_model(handle, compiled_code, parsed_model["original_file_path"])
        return self.connections.get_response(handle)

    # ── dbt's own tests of adapters ──────────────────────────────────────────────────────────

    def run_sql_for_tests(self, sql: str, fetch: str, conn: Any) -> Any:
        cursor = conn.handle.cursor()
        cursor.execute(sql)
        fetchers: dict[str, Callable[[], Any]] = {"one": cursor.fetchone, "all": cursor.fetchall}
        return fetchers[fetch]() if fetch in fetchers else None

    @classmethod
    def _get_adapter_specific_run_info(cls, config: RelationConfig) -> dict[str, Any]:
        return {"adapter_type": "acidsql", "table_format": None}


def _columns_among(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of DESCRIBE that are columns: those before the first heading."""
    for row in rows:
        if not row[0] or row[0].startswith("# "):
            return
        yield row


def _facts_among(rows: Iterable[tuple[Any, ...]]) -> dict[str, str]:
    """Return the facts of DESCRIBE EXTENDED behind the columns: label → text."""
    facts: dict[str, str] = {}
    is_behind_columns = False
    for label, text, *_ in rows:
        is_behind_columns = is_behind_columns or label == "# Detailed Table Information"
        if is_behind_columns:
            facts.setdefault(label, text)
    return facts


def _as_text(value: Any) -> str | None:
    """Return a value of a seed as a text that Spark's CAST reads. Raise DbtRuntimeError for a value
    of a type that seeds do not have."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, int | float | date):
        return str(value)
    raise DbtRuntimeError(f"A seed has a value of type {type(value).__name__}: {value!r}.")
