"""Describes a table or view for people: its CREATE statement, and the rows of DESCRIBE."""

from __future__ import annotations

from collections.abc import Mapping

from acidsql.acid.constraints import Constraint, ConstraintKind
from acidsql.acid.table import TRANSACTIONAL, Column, SortColumn, Table, ViewText
from acidsql.plan.standins.view_text import users_properties
from acidsql.storage.columns import quote, quoted_path, string_literal


def create_statement(table: Table) -> str:
    """Return a CREATE statement of a table or view, with its full name and its properties (of a
    view only those that the user has set), but without its LOCATION. A NOT NULL stands beside its
    column."""
    if table.view is not None:
        return _create_view(table, table.view)
    elements = [_column_sql(column, table) for column in table.columns]
    elements += [
        _constraint_sql(constraint)
        for constraint in table.constraints
        if constraint.kind is not ConstraintKind.NOT_NULL
    ]
    columns = ",\n  ".join(elements)
    kind = "TABLE" if table.name.session_txn_id is None else "TEMPORARY TABLE"
    lines = [f"CREATE {kind} {_quoted_name(table)} (\n  {columns})"]
    if table.comment:
        lines.append(f"COMMENT {string_literal(table.comment)}")
    if table.partition_columns:
        names = ", ".join(_column_sql(column, table) for column in table.partition_columns)
        lines.append(f"PARTITIONED BY ({names})")
    if table.is_bucketed:
        names = ", ".join(map(quote, table.bucket_columns))
        order = ", ".join(_sort_sql(column) for column in table.sort_columns)
        order = f" SORTED BY ({order})" if order else ""
        lines.append(f"CLUSTERED BY ({names}){order} INTO {table.num_buckets} BUCKETS")
    lines.append(f"STORED AS {table.file_format.upper()}")
    return "\n".join([*lines, tblproperties_clause(table.properties)])


def _create_view(view: Table, text: ViewText) -> str:
    """Return a CREATE VIEW statement with the view's columns, comment, the properties that the user
    has set, and its expanded query, with full names. ``'transactional'='true'`` makes the view one
    of acidsql's again, also if its query reads no ACID table."""
    columns = ",\n  ".join(
        quote(column.name)
        + (f" COMMENT {string_literal(column.comment)}" if column.comment else "")
        for column in view.columns
    )
    lines = [f"CREATE VIEW {_quoted_name(view)} (\n  {columns})"]
    if view.comment:
        lines.append(f"COMMENT {string_literal(view.comment)}")
    lines.append(tblproperties_clause({**users_properties(view), TRANSACTIONAL: "true"}))
    return "\n".join([*lines, f"AS {text.expanded}"])


def _quoted_name(table: Table) -> str:
    return quoted_path((table.name.database, table.name.shown))


def tblproperties_clause(properties: Mapping[str, str]) -> str:
    """Return the clause TBLPROPERTIES of a CREATE statement. It lists the properties, of which
    there is at least one, as string literals, sorted by key."""
    pairs = ",\n  ".join(
        f"{string_literal(k)}={string_literal(v)}" for k, v in sorted(properties.items())
    )
    return f"TBLPROPERTIES (\n  {pairs})"


def _sort_sql(column: SortColumn) -> str:
    return f"{quote(column.name)} {'DESC' if column.descending else 'ASC'}"


def _constraint_sql(constraint: Constraint) -> str:
    return f"CONSTRAINT {quote(constraint.name)} {_constraint_definition(constraint)}"


def _constraint_definition(constraint: Constraint) -> str:
    """Return the SQL of a constraint without its name, such as ``UNIQUE (a) DISABLE NOVALIDATE``.
    DISABLE NOVALIDATE stands there if it is not enforced; RELY or NORELY, if it is relied on but
    not enforced, or the reverse. NOT NULL does not name its column."""
    words = [constraint.kind.value]
    if constraint.kind is ConstraintKind.CHECK:
        words.append(f"({constraint.condition})")
    elif constraint.kind is not ConstraintKind.NOT_NULL:
        words.append(f"({', '.join(map(quote, constraint.columns))})")
    if constraint.kind is ConstraintKind.FOREIGN_KEY:
        parent = quoted_path(constraint.parent.split("."))
        words.append(f"REFERENCES {parent} ({', '.join(map(quote, constraint.parent_columns))})")
    if not constraint.is_enforced:
        words.append("DISABLE NOVALIDATE")
    if constraint.is_relied != constraint.is_enforced:
        words.append("RELY" if constraint.is_relied else "NORELY")
    return " ".join(words)


def _column_sql(column: Column, table: Table) -> str:
    """Return a column's definition for CREATE TABLE: name in backticks, type (in capitals, unless
    it is nested), NOT NULL (enforced, or as a named constraint of the table), DEFAULT and
    COMMENT."""
    sql = f"{quote(column.name)} {column.type.upper() if '<' not in column.type else column.type}"
    if not column.nullable:
        sql += " NOT NULL"
    for constraint in table.constraints:
        if (
            constraint.kind is ConstraintKind.NOT_NULL
            and constraint.columns == (column.name,)
            and column.nullable
        ):
            sql += f" {_constraint_sql(constraint)}"
    if column.default is not None:
        sql += f" DEFAULT {column.default}"
    return sql + (f" COMMENT {string_literal(column.comment)}" if column.comment else "")


def column_row(column: Column) -> tuple[str, str, str]:
    """Return a column as a row of DESCRIBE: name, type, comment ("" without a comment)."""
    return column.name, column.type, column.comment or ""


def detail_rows(table: Table) -> list[tuple[str, str]]:
    """Return the facts about a table or view that DESCRIBE EXTENDED adds, as pairs of a label and a
    text; "" for what the table does not have."""
    if (text := table.view) is not None:
        return [
            ("Database", table.name.database),
            ("Table", table.name.shown),
            ("Type", "VIEW"),
            ("View Text", text.expanded),
            ("View Original Text", text.original),
            ("Comment", table.comment or ""),
            ("Table Properties", _properties_text(table)),
        ]
    return [
        ("Database", table.name.database),
        ("Table", table.name.shown),
        *([] if table.name.session_txn_id is None else [("Type", "TEMPORARY")]),
        ("Location", table.location),
        ("Num Buckets", str(table.num_buckets)),
        ("Bucket Columns", ", ".join(table.bucket_columns)),
        ("Sort Columns", ", ".join(map(_sort_sql, table.sort_columns))),
        *(
            (f"Constraint {constraint.name}", _constraint_description(constraint))
            for constraint in table.constraints
        ),
        ("Comment", table.comment or ""),
        ("Table Properties", _properties_text(table)),
    ]


def _properties_text(table: Table) -> str:
    return ", ".join(f"{k}={v}" for k, v in sorted(table.properties.items()))


def _constraint_description(constraint: Constraint) -> str:
    """Return the SQL of a constraint without its name; for NOT NULL with its column before it."""
    if constraint.kind is ConstraintKind.NOT_NULL:
        return f"{quote(constraint.columns[0])} {_constraint_definition(constraint)}"
    return _constraint_definition(constraint)
