"""Reading a table: one that a metastore describes, or any Hive ACID directory without one."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.write_ids import ALL_TXNS, NONE_OPEN, ValidTxnList, ValidWriteIdList
from acidsql.errors import FormatError
from acidsql.storage.columns import quote, shown_type
from acidsql.storage.event_writer import PARTITION
from acidsql.storage.filesystem import FileSystem, filesystem_for
from acidsql.storage.listing import Listing, discover_partitions, list_inserts_only, list_table
from acidsql.storage.scan import ROW__ID, Scan, partition_values, scan

Schema = str | StructType | Sequence[tuple[str, str]]


def read_rows(
    spark: SparkSession,
    table: Table,
    partitions: Sequence[str],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
) -> DataFrame:
    """A snapshot's live rows, as ``storage.scan`` gives them.

    Args:
        spark: The session.
        table: What to read.
        partitions: Its partition directories, ``p1=a/p2=1``; of an unpartitioned table ignored.
        write_ids: The table's valid write ids.
        txns: The valid transactions.
    """
    fs = filesystem_for(table.location)
    where = partitions if table.partition_columns else [""]
    if table.is_insert_only:
        return _insert_only(spark, fs, table, where, write_ids, txns, "orc")
    listings = list_table(fs, table.location, where, write_ids, txns)
    return scan(spark, Scan(table, listings, write_ids))


def read(
    spark: SparkSession,
    path: str,
    schema: Schema | None = None,
    partitioned_by: Schema | None = None,
    *,
    insert_only: bool = False,
    file_format: str = "orc",
    valid_write_ids: str | None = None,
    valid_txns: str | None = None,
) -> DataFrame:
    """Read any Hive ACID directory, without a metastore.

    Args:
        spark: The session.
        path: The table's directory.
        schema: The data columns in the table's order, because Hive matches them by position: DDL
            text (``id int, name string``), a StructType, or pairs of a name and Hive's type;
            default: those of the newest file.
        partitioned_by: The partition columns, in the same forms.
        insert_only: The table is of ``transactional_properties=insert_only``.
        file_format: Of an insert-only table; a full-ACID table is always ``orc``.
        valid_write_ids: The snapshot as Hive writes it, ``db.t:highWaterMark:minOpen:open:aborted``;
            default: everything is visible.
        valid_txns: The same of transactions, ``highWaterMark:minOpen:open:aborted``.

    Returns:
        The live rows, lazily, in no order: ``row__id`` (struct of writeid bigint, bucketid int,
        rowid bigint; not if ``insert_only``), the data columns, the partition columns. TIMESTAMP
        is shown as TIMESTAMP_NTZ.

    Raises:
        FormatError: The directory breaks Hive's rules, or has no file to take the schema from.
    """
    fs = filesystem_for(path)
    path = path.rstrip("/")
    by = _columns(partitioned_by) if partitioned_by else ()
    found = discover_partitions(fs, path, [column.name for column in by])
    write_ids = ValidWriteIdList.parse(valid_write_ids) if valid_write_ids else _everything()
    txns = ValidTxnList.parse(valid_txns) if valid_txns else ALL_TXNS
    listings = [] if insert_only else list_table(fs, path, found, write_ids, txns)
    columns = _columns(schema) if schema else _from_files(spark, listings, path)
    properties = {"transactional_properties": "insert_only"} if insert_only else {}
    table = Table(TableName("", path), path, columns, by, properties=properties)
    if insert_only:
        return _insert_only(spark, fs, table, found, write_ids, txns, file_format)
    return scan(spark, Scan(table, listings, write_ids)).drop(PARTITION)


def _insert_only(
    spark: SparkSession,
    fs: FileSystem,
    table: Table,
    partitions: Sequence[str],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    file_format: str,
) -> DataFrame:
    """Plain files; the directories say what is visible."""
    files = {
        partition: list_inserts_only(
            fs, f"{table.location}/{partition}".rstrip("/"), partition, write_ids, txns
        )
        for partition in partitions
    }
    ddl = ", ".join(f"{quote(c.name)} {shown_type(c.type)}" for c in table.columns)
    paths = [file for group in files.values() for file in group]
    reader = spark.read.schema(ddl).options(ignoreMissingFiles="false", __globPaths__="false")
    if file_format == "text":
        # Hive's LazySimpleSerDe: fields end at ^A, NULL is \\N.
        reader = reader.options(sep="\x01", nullValue="\\N", quote="", escape="")
    else:
        reader = reader.options(**{"orc.force.positional.evolution": "true"})
    rows = reader.format("csv" if file_format == "text" else file_format).load(paths or [])
    if not paths:
        return spark.createDataFrame([], ddl)
    return rows.selectExpr(
        *(quote(column.name) for column in table.columns),
        *partition_values(table, list(files), "_metadata.file_path"),
    )


def _everything() -> ValidWriteIdList:
    return ValidWriteIdList(NONE_OPEN)


def _columns(schema: Schema) -> tuple[Column, ...]:
    if isinstance(schema, str):
        schema = StructType.fromDDL(schema)
    if isinstance(schema, StructType):
        schema = [(f.name, f.dataType.simpleString()) for f in schema.fields]
    return tuple(Column(name.lower(), _hive(kind)) for name, kind in schema)


def _hive(kind: str) -> str:
    return kind.lower().replace("timestamp_ntz", "timestamp")


def _from_files(
    spark: SparkSession, listings: Sequence[Listing], path: str
) -> tuple[Column, ...]:
    files = [file for listing in listings for file in listing.data if file.length is None]
    if not files:
        raise FormatError(
            f"'{path}' has no file to take the columns from; say schema=….", path=path
        )
    newest = max(files, key=lambda file: file.directory.max_write_id)
    reader = spark.read.options(__globPaths__="false")
    row = reader.orc(newest.path).schema["row"].dataType
    assert isinstance(row, StructType)
    return _columns(row)


__all__ = ["ROW__ID", "read", "read_rows"]
