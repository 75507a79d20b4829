"""Hive's structs of the catalog ⇄ acidsql's values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from acidsql.acid.cdc import BOND
from acidsql.acid.constraints import Constraint, Kind
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
from acidsql.metastore.hive.idl import hive

MANAGED, VIRTUAL_VIEW = "MANAGED_TABLE", "VIRTUAL_VIEW"
COMMENT = "comment"
# A client that does not say that it can do all this may not create ACID tables.
CAPABILITIES = [
    "HIVEFULLACIDREAD", "HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTREAD", "HIVEMANAGEDINSERTWRITE",
    "HIVEBUCKET2", "HIVECACHEINVALIDATE", "HIVEMANAGESTATS", "EXTREAD", "EXTWRITE", "HIVESQL",
]  # fmt: skip
STATS_ACCURATE, ROWS = "COLUMN_STATS_ACCURATE", "numRows"
# What is there no longer right after a commit. Hive looks at the files if it does not know these.
_OUTDATED = {STATS_ACCURATE, ROWS, "numFiles", "totalSize"}
# The server keeps these parameters itself. They say nothing about what the table is.
_SERVERS = {
    STATS_ACCURATE, ROWS, "numFiles", "rawDataSize", "totalSize", "numPartitions",
    "numFilesErasureCoded", "transient_lastDdlTime", "last_modified_by", "last_modified_time",
    "DO_NOT_UPDATE_STATS", COMMENT,
}  # fmt: skip
_ASCENDING, _DESCENDING = 1, 0
_PACKAGE = "org.apache.hadoop.hive.ql.io"
# A format's classes: of input, of output, and of its rows.
FORMATS = {
    ORC: (
        f"{_PACKAGE}.orc.OrcInputFormat", f"{_PACKAGE}.orc.OrcOutputFormat",
        f"{_PACKAGE}.orc.OrcSerde",
    ),
    PARQUET: (
        f"{_PACKAGE}.parquet.MapredParquetInputFormat",
        f"{_PACKAGE}.parquet.MapredParquetOutputFormat",
        f"{_PACKAGE}.parquet.serde.ParquetHiveSerDe",
    ),
}  # fmt: skip


def is_transactional(raw: Any) -> bool:
    """Whether a table of the server is an ACID table."""
    is_on: bool = (raw.parameters or {}).get(TRANSACTIONAL, "").lower() == "true"
    return is_on and raw.tableType == MANAGED


def is_view(raw: Any) -> bool:
    """Whether a table of the server is a view. (A materialized view is a table of files.)"""
    return bool(raw.tableType == VIRTUAL_VIEW)


# ── places ───────────────────────────────────────────────────────────────────────────────────


def ours(location: str) -> str:
    """The server's location as acidsql writes it: ``file:/a`` is ``/a``."""
    return plain_path(location).rstrip("/")


def theirs(location: str) -> str:
    """A location as the server must get it, whose default file system may be another one."""
    is_plain = is_local(location) and not scheme_and_root(location)[0]
    return f"file:{location}" if is_plain else location


# ── tables ───────────────────────────────────────────────────────────────────────────────────


def table_of(raw: Any, constraints: Any) -> Table:
    """The table in a struct of the server.

    Args:
        raw: A ``Table``.
        constraints: Its ``SQLAllTableConstraints``.
    """
    sd, parameters = raw.sd, dict(raw.parameters or {})
    required = {one.column_name for one in constraints.notNullConstraints or () if one.enable_cstr}
    defaults = {one.column_name: one.default_value for one in constraints.defaultConstraints or ()}

    def columns(fields: Sequence[Any] | None) -> tuple[Column, ...]:
        return tuple(
            Column(
                one.name.lower(), one.type.lower(), one.name not in required,
                defaults.get(one.name), one.comment or None,
            )
            for one in fields or ()
        )  # fmt: skip

    return Table(
        TableName(raw.dbName, raw.tableName),
        ours(sd.location),
        columns(sd.cols),
        columns(raw.partitionKeys),
        tuple(name.lower() for name in sd.bucketCols or ()),
        sd.numBuckets if sd.bucketCols and sd.numBuckets > 0 else -1,
        _properties(parameters),
        parameters.get(COMMENT) or None,
        _constraints_of(constraints),
        _sorting(sd),
        format_of(sd),
        identity(raw),
        bonds={k.removeprefix(BOND): v for k, v in parameters.items() if k.startswith(BOND)},
    )


def _sorting(sd: Any) -> tuple[SortColumn, ...]:
    """SORTED BY, up to a column that is not there: Hive leaves the old name there if a column is
    renamed, and rows are sorted by nothing behind it."""
    known = {field.name.lower() for field in sd.cols}
    found = [SortColumn(by.col.lower(), by.order == _DESCENDING) for by in sd.sortCols or ()]
    return tuple(takewhile(lambda by: by.name in known, found))


def view_of(raw: Any) -> Table:
    """The view in a struct of the server."""
    parameters = dict(raw.parameters or {})
    return Table(
        TableName(raw.dbName, raw.tableName),
        "",
        tuple(
            Column(one.name.lower(), one.type.lower(), comment=one.comment or None)
            for one in (*raw.sd.cols, *(raw.partitionKeys or ()))
        ),
        properties=_properties(parameters),
        comment=parameters.get(COMMENT) or None,
        identity=identity(raw),
        is_transactional=False,
        view=ViewText(raw.viewOriginalText or "", raw.viewExpandedText or raw.viewOriginalText),
    )


def _properties(parameters: Mapping[str, str]) -> dict[str, str]:
    """The properties that say what a table is."""
    return {
        key: value
        for key, value in parameters.items()
        if key not in _SERVERS and not key.startswith((STATISTICS, BOND))
    }


def identity(raw: Any) -> str:
    """What tells a table from a later one of its name."""
    return f"{raw.id}/{raw.createTime}"


def format_of(sd: Any) -> str:
    """``orc``, ``parquet``, or the name of another format's class."""
    name: str = sd.inputFormat or ""
    return next((one for one, names in FORMATS.items() if names[0] == name), name)


def is_known_format(name: str) -> bool:
    """Whether acidsql reads and writes files of this format."""
    return name in FORMATS


def raw_table(table: Table, owner: str, catalog: str, rows: int | None) -> Any:
    """The struct with which the server creates a table; ``rows``: how many are in it, if known."""
    made = _named(table, owner, catalog)
    made.sd, made.tableType = descriptor(table), MANAGED
    made.partitionKeys = fields(table.partition_columns)
    made.parameters.update(_counted(rows))
    return made


def raw_view(view: Table, owner: str, catalog: str) -> Any:
    """The struct with which the server creates a view."""
    assert view.view is not None
    made = _named(view, owner, catalog)
    made.tableType = VIRTUAL_VIEW
    made.viewOriginalText, made.viewExpandedText = view.view.original, view.view.expanded
    made.partitionKeys = []
    # As Hive writes it: there are no files of this format.
    made.sd = hive.StorageDescriptor(
        cols=fields(view.columns), inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat=f"{_PACKAGE}.HiveIgnoreKeyTextOutputFormat", compressed=False, numBuckets=-1,
        serdeInfo=hive.SerDeInfo(parameters={}), bucketCols=[], sortCols=[], parameters={},
        storedAsSubDirectories=False,
    )  # fmt: skip
    return made


def _named(table: Table, owner: str, catalog: str) -> Any:
    """The struct of a new table or view without its storage and columns."""
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


def descriptor(table: Table) -> Any:
    """The struct of a table's storage."""
    inputs, outputs, serde = FORMATS[table.file_format]
    return hive.StorageDescriptor(
        cols=fields(table.columns),
        location=theirs(table.location),
        inputFormat=inputs,
        outputFormat=outputs,
        compressed=False,
        numBuckets=table.num_buckets,
        serdeInfo=hive.SerDeInfo(
            name=table.name.name, serializationLib=serde, parameters={"serialization.format": "1"}
        ),
        bucketCols=list(table.bucket_columns),
        sortCols=orders(table.sort_columns),
        parameters={},
        storedAsSubDirectories=False,
    )


def orders(columns: Iterable[SortColumn]) -> list[Any]:
    """The structs of the columns of SORTED BY."""
    return [
        hive.Order(col=by.name, order=_DESCENDING if by.descending else _ASCENDING)
        for by in columns
    ]


def fields(columns: Sequence[Column]) -> list[Any]:
    """The structs of columns."""
    return [hive.FieldSchema(name=c.name, type=c.type, comment=c.comment) for c in columns]


def not_null(name: TableName, columns: Sequence[Column], catalog: str) -> list[Any]:
    """The NOT NULL constraints of columns."""
    return [
        hive.SQLNotNullConstraint(column_name=column.name, **_constraint(name, catalog))
        for column in columns
        if not column.nullable
    ]


def defaults(name: TableName, columns: Sequence[Column], catalog: str) -> list[Any]:
    """The DEFAULT constraints of columns."""
    return [
        hive.SQLDefaultConstraint(
            column_name=column.name, default_value=column.default, **_constraint(name, catalog)
        )
        for column in columns
        if column.default is not None
    ]


def checks(name: TableName, constraints: Iterable[Constraint], catalog: str) -> list[Any]:
    """The CHECK constraints among these."""
    return [
        hive.SQLCheckConstraint(
            check_expression=one.condition, dc_name=one.name, **_constraint(name, catalog, one)
        )
        for one in constraints
        if one.kind is Kind.CHECK
    ]


def not_enforced(name: TableName, constraints: Iterable[Constraint], catalog: str) -> list[Any]:
    """The NOT NULL constraints among these, which are information."""
    return [
        hive.SQLNotNullConstraint(
            column_name=one.columns[0], nn_name=one.name, **_constraint(name, catalog, one)
        )
        for one in constraints
        if one.kind is Kind.NOT_NULL
    ]


def _constraints_of(all_: Any) -> tuple[Constraint, ...]:
    found = [
        Constraint(
            one.dc_name, Kind.CHECK, one.check_expression,
            is_enforced=bool(one.enable_cstr), is_relied=bool(one.rely_cstr),
        )
        for one in all_.checkConstraints or ()
    ]  # fmt: skip
    found += [
        Constraint(
            one.nn_name, Kind.NOT_NULL, columns=(one.column_name,), is_relied=bool(one.rely_cstr)
        )
        for one in all_.notNullConstraints or ()
        if not one.enable_cstr
    ]
    return tuple(found)


def _constraint(name: TableName, catalog: str, one: Constraint | None = None) -> dict[str, Any]:
    """What Hive's constraints have in common; by default ENABLE NOVALIDATE RELY."""
    return {
        "catName": catalog, "table_db": name.database, "table_name": name.name,
        "enable_cstr": one is None or one.is_enforced, "validate_cstr": False,
        "rely_cstr": one is None or one.is_relied,
    }  # fmt: skip


def changed(raw: Any, properties: Mapping[str, str], unset: Sequence[str]) -> None:
    """Change the properties in a struct of the server."""
    parameters = dict(raw.parameters or {})
    for key in unset:
        parameters.pop(key, None)
    raw.parameters = {**parameters, **properties}


# ── partitions ───────────────────────────────────────────────────────────────────────────────


def partition_of(raw: Any) -> Partition:
    """The partition in a struct of the server."""
    values = (None if value in (DEFAULT_PARTITION, "") else value for value in raw.values)
    return Partition(tuple(values), ours(raw.sd.location))


def values_in(name: str) -> list[str] | None:
    """The values in a partition's name, as Hive's structs have them; None: no partition."""
    if not name:
        return None
    return [value or DEFAULT_PARTITION for _, value in parse_partition_name(name)]


def raw_partition(table: Any, partition: Partition, catalog: str, rows: int | None) -> Any:
    """The struct with which the server adds a partition to a table, which is a struct, too;
    ``rows``: how many are in it, if known."""
    sd = hive.StorageDescriptor(**{
        name: getattr(table.sd, name) for name in hive.StorageDescriptor.__slots__
    })  # fmt: skip
    sd.location = theirs(partition.location)
    return hive.Partition(
        values=[value or DEFAULT_PARTITION for value in partition.values],  # "" is NULL, too
        dbName=table.dbName,
        tableName=table.tableName,
        createTime=0,
        lastAccessTime=0,
        sd=sd,
        parameters=_counted(rows),
        catName=catalog,
    )


# ── statistics ───────────────────────────────────────────────────────────────────────────────


def unmark(raw: Any) -> None:
    """Take the mark from a struct that its statistics are right."""
    raw.parameters = {k: v for k, v in (raw.parameters or {}).items() if k != STATS_ACCURATE}


def rows_of(raw: Any) -> int | None:
    """How many rows a table or partition has, as the server knows; None: it does not know."""
    text = (raw.parameters or {}).get(ROWS, "")
    return int(text) if text.isdecimal() else None


def count(raw: Any, rows: int | None) -> None:
    """Note in a struct how many rows there are; without the mark that the statistics are right, and
    without sizes."""
    kept = {k: v for k, v in (raw.parameters or {}).items() if k not in _OUTDATED}
    raw.parameters = {**kept, **_counted(rows)}


def statistics_of(raw: Any) -> dict[str, str]:
    """The entries of ``Catalog.keep_statistics`` in a struct. The server makes nothing of them."""
    found = (raw.parameters or {}).items()
    return {k.removeprefix(STATISTICS): v for k, v in found if k.startswith(STATISTICS)}


def _counted(rows: int | None) -> dict[str, str]:
    return {} if rows is None else {ROWS: str(rows)}
