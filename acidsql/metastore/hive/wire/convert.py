"""Hive's structs of the catalog ⇄ acidsql's values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from acidsql.acid.cdc import BOND
from acidsql.acid.constraints import Constraint, ConstraintKind
from acidsql.acid.layout import DEFAULT_PARTITION, parse_partition_name
from acidsql.acid.paths import is_local, plain_path, scheme_and_root
from acidsql.acid.table import (
    ORC,
    PARQUET,
    STATISTICS,
    TRANSACTIONAL,
    Column,
    Partition,
    SortColumn,
    Table,
    TableName,
    ViewText,
)
from acidsql.metastore.hive.wire.idl import hive

MANAGED, VIRTUAL_VIEW = "MANAGED_TABLE", "VIRTUAL_VIEW"
COMMENT = "comment"
# Only a client that claims all of these capabilities may create ACID tables.
CAPABILITIES = [
    "HIVEFULLACIDREAD", "HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTREAD", "HIVEMANAGEDINSERTWRITE",
    "HIVEBUCKET2", "HIVECACHEINVALIDATE", "HIVEMANAGESTATS", "EXTREAD", "EXTWRITE", "HIVESQL",
]  # fmt: skip
STATS_ACCURATE, ROWS = "COLUMN_STATS_ACCURATE", "numRows"
# Parameters that are wrong after a commit. Hive looks at the files if these are missing.
_OUTDATED_BY_COMMIT = {STATS_ACCURATE, ROWS, "numFiles", "totalSize"}
# The server keeps these parameters itself. They say nothing about what the table is.
_SERVER_PARAMETERS = {
    STATS_ACCURATE, ROWS, "numFiles", "rawDataSize", "totalSize", "numPartitions",
    "numFilesErasureCoded", "transient_lastDdlTime", "last_modified_by", "last_modified_time",
    "DO_NOT_UPDATE_STATS", COMMENT,
}  # fmt: skip
_ASCENDING, _DESCENDING = 1, 0
_PACKAGE = "org.apache.hadoop.hive.ql.io"
# A format's classes: of input, of output, and of its rows.
FORMATS = {
    ORC: (
        f"{_PACKAGE}.orc.OrcInputFormat",
        f"{_PACKAGE}.orc.OrcOutputFormat",
        f"{_PACKAGE}.orc.OrcSerde",
    ),
    PARQUET: (
        f"{_PACKAGE}.parquet.MapredParquetInputFormat",
        f"{_PACKAGE}.parquet.MapredParquetOutputFormat",
        f"{_PACKAGE}.parquet.serde.ParquetHiveSerDe",
    ),
}


def is_transactional(raw: Any) -> bool:
    """Whether a table of the server is an ACID table."""
    is_on: bool = (raw.parameters or {}).get(TRANSACTIONAL, "").lower() == "true"
    return is_on and raw.tableType == MANAGED


def is_view(raw: Any) -> bool:
    """Whether a table of the server is a view. (A materialized view is a table of files.)"""
    return bool(raw.tableType == VIRTUAL_VIEW)


# ── places ───────────────────────────────────────────────────────────────────────────────────


def from_server_location(location: str) -> str:
    """A location from the server in acidsql's form: ``/a`` for ``file:/a``."""
    return plain_path(location).rstrip("/")


def to_server_location(location: str) -> str:
    """A location in the server's form: ``file:/a`` for ``/a``.

    The server's default file system may be another one than ours.
    """
    is_plain = is_local(location) and not scheme_and_root(location)[0]
    return f"file:{location}" if is_plain else location


# ── tables ───────────────────────────────────────────────────────────────────────────────────


def table_of(raw: Any, constraints: Any) -> Table:
    """Make the table of a struct of the server. Names and types of columns become lower case.
    Properties that the server keeps itself, the comment, statistics and bonds are not among
    ``properties``. A NOT NULL that nobody enforces is one of ``constraints``, and its column may be
    NULL.

    Args:
        raw: A ``Table``.
        constraints: Its ``SQLAllTableConstraints``.
    """
    sd, parameters = raw.sd, dict(raw.parameters or {})
    required = {
        constraint.column_name
        for constraint in constraints.notNullConstraints or ()
        if constraint.enable_cstr
    }
    defaults = {
        constraint.column_name: constraint.default_value
        for constraint in constraints.defaultConstraints or ()
    }

    def columns(fields: Sequence[Any] | None) -> tuple[Column, ...]:
        return tuple(
            Column(
                field.name.lower(), field.type.lower(), field.name not in required,
                defaults.get(field.name), field.comment or None,
            )
            for field in fields or ()
        )  # fmt: skip

    return Table(
        TableName(raw.dbName, raw.tableName),
        from_server_location(sd.location),
        columns(sd.cols),
        columns(raw.partitionKeys),
        tuple(name.lower() for name in sd.bucketCols or ()),
        sd.numBuckets if sd.bucketCols and sd.numBuckets > 0 else -1,
        _properties(parameters),
        parameters.get(COMMENT) or None,
        _constraints_of(constraints),
        _sort_columns(sd),
        format_of(sd),
        identity(raw),
        bonds={k.removeprefix(BOND): v for k, v in parameters.items() if k.startswith(BOND)},
    )


def _sort_columns(sd: Any) -> tuple[SortColumn, ...]:
    """Return the columns of SORTED BY, up to the first name that is no column of the table.

    Hive keeps the old name in SORTED BY if a column is renamed. Rows are not sorted by the columns
    behind such a name.
    """
    column_names = {field.name.lower() for field in sd.cols}
    sort_columns = [SortColumn(by.col.lower(), by.order == _DESCENDING) for by in sd.sortCols or ()]
    return tuple(takewhile(lambda by: by.name in column_names, sort_columns))


def view_of(raw: Any) -> Table:
    """Make the view of a struct of the server, without a location. Columns by which Hive says that
    a view is partitioned are its last columns."""
    parameters = dict(raw.parameters or {})
    return Table(
        TableName(raw.dbName, raw.tableName),
        "",
        tuple(
            Column(field.name.lower(), field.type.lower(), comment=field.comment or None)
            for field in (*raw.sd.cols, *(raw.partitionKeys or ()))
        ),
        properties=_properties(parameters),
        comment=parameters.get(COMMENT) or None,
        identity=identity(raw),
        is_transactional=False,
        view=ViewText(raw.viewOriginalText or "", raw.viewExpandedText or raw.viewOriginalText),
    )


def _properties(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the properties without those that the server keeps itself, the table's comment,
    statistics and bonds."""
    return {
        key: value
        for key, value in parameters.items()
        if key not in _SERVER_PARAMETERS and not key.startswith((STATISTICS, BOND))
    }


def identity(raw: Any) -> str:
    """A text that differs between a table and a later table of the same name."""
    return f"{raw.id}/{raw.createTime}"


def format_of(sd: Any) -> str:
    """``orc``, ``parquet``, or the name of another format's class."""
    name: str = sd.inputFormat or ""
    return next((format_name for format_name, names in FORMATS.items() if names[0] == name), name)


def is_known_format(name: str) -> bool:
    """Whether acidsql reads and writes files of this format."""
    return name in FORMATS


def raw_table(table: Table, owner: str, catalog: str, rows: int | None) -> Any:
    """Make the struct of a table to create. ``rows``: the number of rows in it; None: not known."""
    raw = _new_raw_table(table, owner, catalog)
    raw.sd, raw.tableType = storage_descriptor(table), MANAGED
    raw.partitionKeys = fields(table.partition_columns)
    raw.parameters.update(_row_count_parameters(rows))
    return raw


def raw_view(view: Table, owner: str, catalog: str) -> Any:
    """Make the struct of a view to create: its two texts, its columns, and as storage what Hive
    writes for a view, without a location. It has no partition columns."""
    assert view.view is not None
    raw = _new_raw_table(view, owner, catalog)
    raw.tableType = VIRTUAL_VIEW
    raw.viewOriginalText, raw.viewExpandedText = view.view.original, view.view.expanded
    raw.partitionKeys = []
    # As Hive writes it: there are no files of this format.
    raw.sd = hive.StorageDescriptor(
        cols=fields(view.columns), inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat=f"{_PACKAGE}.HiveIgnoreKeyTextOutputFormat", compressed=False, numBuckets=-1,
        serdeInfo=hive.SerDeInfo(parameters={}), bucketCols=[], sortCols=[], parameters={},
        storedAsSubDirectories=False,
    )  # fmt: skip
    return raw


def _new_raw_table(table: Table, owner: str, catalog: str) -> Any:
    """Make the struct of a new table or view without its storage, columns and kind; the comment is
    one of its properties."""
    comment = {} if table.comment is None else {COMMENT: table.comment}
    return hive.Table(
        tableName=table.name.name,
        dbName=table.name.database,
        owner=owner,
        createTime=0,
        lastAccessTime=0,
        retention=0,
        parameters={**table.properties, **comment},
        temporary=False,
        catName=catalog,
    )


def storage_descriptor(table: Table) -> Any:
    """Make the struct of a table's storage: data columns, location in the server's form, the
    format's classes, buckets and SORTED BY."""
    inputs, outputs, serde = FORMATS[table.file_format]
    return hive.StorageDescriptor(
        cols=fields(table.columns),
        location=to_server_location(table.location),
        inputFormat=inputs,
        outputFormat=outputs,
        compressed=False,
        numBuckets=table.num_buckets,
        serdeInfo=hive.SerDeInfo(
            name=table.name.name, serializationLib=serde, parameters={"serialization.format": "1"}
        ),
        bucketCols=list(table.bucket_columns),
        sortCols=sort_orders(table.sort_columns),
        parameters={},
        storedAsSubDirectories=False,
    )


def sort_orders(columns: Iterable[SortColumn]) -> list[Any]:
    """Make the structs of the columns of SORTED BY."""
    return [
        hive.Order(col=by.name, order=_DESCENDING if by.descending else _ASCENDING)
        for by in columns
    ]


def fields(columns: Sequence[Column]) -> list[Any]:
    """The structs of columns."""
    return [hive.FieldSchema(name=c.name, type=c.type, comment=c.comment) for c in columns]


def not_null_constraints(name: TableName, columns: Sequence[Column], catalog: str) -> list[Any]:
    """Make the structs of the NOT NULL constraints of those columns that have one."""
    return [
        hive.SQLNotNullConstraint(column_name=column.name, **_constraint_fields(name, catalog))
        for column in columns
        if not column.nullable
    ]


def default_constraints(name: TableName, columns: Sequence[Column], catalog: str) -> list[Any]:
    """Make the structs of the DEFAULT constraints of those columns that have one."""
    return [
        hive.SQLDefaultConstraint(
            column_name=column.name,
            default_value=column.default,
            **_constraint_fields(name, catalog),
        )
        for column in columns
        if column.default is not None
    ]


def check_constraints(
    name: TableName, constraints: Iterable[Constraint], catalog: str
) -> list[Any]:
    """Make the structs of the CHECK constraints among these."""
    return [
        hive.SQLCheckConstraint(
            check_expression=constraint.condition,
            dc_name=constraint.name,
            **_constraint_fields(name, catalog, constraint),
        )
        for constraint in constraints
        if constraint.kind is ConstraintKind.CHECK
    ]


def unenforced_constraints(
    name: TableName, constraints: Iterable[Constraint], catalog: str
) -> list[Any]:
    """Make the structs of the NOT NULL constraints among these, which nobody enforces."""
    return [
        hive.SQLNotNullConstraint(
            column_name=constraint.columns[0],
            nn_name=constraint.name,
            **_constraint_fields(name, catalog, constraint),
        )
        for constraint in constraints
        if constraint.kind is ConstraintKind.NOT_NULL
    ]


def _constraints_of(raw_constraints: Any) -> tuple[Constraint, ...]:
    """Return the CHECK constraints in the server's structs, and the NOT NULL constraints that are
    not enforced."""
    constraints = [
        Constraint(
            raw.dc_name, ConstraintKind.CHECK, raw.check_expression,
            is_enforced=bool(raw.enable_cstr), is_relied=bool(raw.rely_cstr),
        )
        for raw in raw_constraints.checkConstraints or ()
    ]  # fmt: skip
    constraints += [
        Constraint(
            raw.nn_name,
            ConstraintKind.NOT_NULL,
            columns=(raw.column_name,),
            is_relied=bool(raw.rely_cstr),
        )
        for raw in raw_constraints.notNullConstraints or ()
        if not raw.enable_cstr
    ]
    return tuple(constraints)


def _constraint_fields(
    name: TableName, catalog: str, constraint: Constraint | None = None
) -> dict[str, Any]:
    """Return the fields that all of Hive's constraints have; without ``constraint``: ENABLE
    NOVALIDATE RELY."""
    return {
        "catName": catalog, "table_db": name.database, "table_name": name.name,
        "enable_cstr": constraint is None or constraint.is_enforced, "validate_cstr": False,
        "rely_cstr": constraint is None or constraint.is_relied,
    }  # fmt: skip


def change_properties(raw: Any, properties: Mapping[str, str], unset_keys: Sequence[str]) -> None:
    """Unset, then set properties in a struct of the server, which is changed; nothing is sent."""
    parameters = dict(raw.parameters or {})
    for key in unset_keys:
        parameters.pop(key, None)
    raw.parameters = {**parameters, **properties}


# ── partitions ───────────────────────────────────────────────────────────────────────────────


def partition_of(raw: Any) -> Partition:
    """The partition in a struct of the server; the name of the default partition and "" become
    NULL."""
    values = (None if value in (DEFAULT_PARTITION, "") else value for value in raw.values)
    return Partition(tuple(values), from_server_location(raw.sd.location))


def partition_values(name: str) -> list[str] | None:
    """The values in a partition's name, in the form of Hive's structs; None for the name ""."""
    if not name:
        return None
    return [value or DEFAULT_PARTITION for _, value in parse_partition_name(name)]


def raw_partition(table: Any, partition: Partition, catalog: str, rows: int | None) -> Any:
    """Make the struct of a partition to add to a table, with the table's storage but its own
    location; NULL and "" become Hive's name of the default partition.

    ``table`` is the server's struct of the table; ``rows`` is the number of rows in the partition;
    None: not known.
    """
    sd = hive.StorageDescriptor(
        **{name: getattr(table.sd, name) for name in hive.StorageDescriptor.__slots__}
    )
    sd.location = to_server_location(partition.location)
    return hive.Partition(
        values=[value or DEFAULT_PARTITION for value in partition.values],  # "" is NULL, too
        dbName=table.dbName,
        tableName=table.tableName,
        createTime=0,
        lastAccessTime=0,
        sd=sd,
        parameters=_row_count_parameters(rows),
        catName=catalog,
    )


# ── statistics ───────────────────────────────────────────────────────────────────────────────


def unmark_statistics(raw: Any) -> None:
    """Remove from a struct the mark that its statistics are right."""
    raw.parameters = {k: v for k, v in (raw.parameters or {}).items() if k != STATS_ACCURATE}


def row_count(raw: Any) -> int | None:
    """The number of rows that the server has for a table or partition; None: it has no number."""
    text = (raw.parameters or {}).get(ROWS, "")
    return int(text) if text.isdecimal() else None


def set_row_count(raw: Any, rows: int | None) -> None:
    """Set the number of rows in a struct; None removes the number.

    This removes the mark that the statistics are right, and the sizes.
    """
    parameters = {k: v for k, v in (raw.parameters or {}).items() if k not in _OUTDATED_BY_COMMIT}
    raw.parameters = {**parameters, **_row_count_parameters(rows)}


def statistics_of(raw: Any) -> dict[str, str]:
    """The entries of ``Catalog.keep_statistics`` in a struct. The server does not read them."""
    parameters = (raw.parameters or {}).items()
    return {k.removeprefix(STATISTICS): v for k, v in parameters if k.startswith(STATISTICS)}


def _row_count_parameters(rows: int | None) -> dict[str, str]:
    return {} if rows is None else {ROWS: str(rows)}
