"""Read a table that a metastore describes, or any Hive ACID directory without a metastore."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from acidsql.acid.paths import scheme_and_root
from acidsql.acid.state import history_gone_error
from acidsql.acid.table import (
    INSERT_ONLY,
    ORC,
    PARQUET,
    TRANSACTIONAL_PROPERTIES,
    Column,
    Table,
    TableName,
)
from acidsql.acid.values.predicate import Demand
from acidsql.acid.values.types import parse_type
from acidsql.acid.write_ids import ALL_TXNS, NONE_OPEN, ValidTxnList, ValidWriteIdList
from acidsql.arguments import checked
from acidsql.errors import FormatError
from acidsql.storage.event_records import KEYS
from acidsql.storage.files.filesystem import filesystem_for, sparks_location
from acidsql.storage.files.gone import naming_missing
from acidsql.storage.files.missing import translate_file_errors
from acidsql.storage.files.partition_tree import discover_partitions
from acidsql.storage.reading.insert_only import PlainFiles, read_inserts_only
from acidsql.storage.reading.pruning.bucket_pruning import prune_buckets
from acidsql.storage.reading.pruning.partition_columns import matching_partitions
from acidsql.storage.reading.scan import Scan, scan
from acidsql.storage.spark.session.jvm import composed_text_conf
from acidsql.storage.spark.session.store_conf import hand_over_store_settings
from acidsql.storage.tables.listing import Listing, list_table, plain_files_by_partition
from acidsql.storage.tables.orc_schema import columns_of
from acidsql.storage.tables.parquet import columns_of_parquet

MANY_PARTITIONS = 8
MUCH_DATA = 16 * 1024 * 1024  # bytes

Schema = str | StructType | Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """What a read sees of one table.

    Attributes:
        table: The table.
        partitions: The directories of its partitions, ``p1=a/p2=1``; ignored for an unpartitioned
            table.
        write_ids: The table's valid write ids.
        txns: The valid transactions.
        is_kept: Tells whether the cleaner still keeps the files that the snapshot needs. It is
            called if a compaction has replaced files meanwhile.
        refuse_lost: Called with the partitions to read if the table has lost partitions: it raises
            if a lost partition is among them. None if no partition is lost.
    """

    table: Table
    partitions: Sequence[str]
    write_ids: ValidWriteIdList
    txns: ValidTxnList
    is_kept: Callable[[], bool]
    refuse_lost: Callable[[Sequence[str]], None] | None

    def list_directories(self, directories: Sequence[str]) -> list[Listing]:
        """List partition directories, and return a listing for each. ``is_kept`` is only asked if a
        compaction has replaced some of the files. Raises FormatError if it has, and they are not
        kept; and SnapshotTooOldError if a directory is gone.
        """
        fs, location = filesystem_for(self.table.location), self.table.location
        listings = list_table(
            fs, location, directories, self.write_ids, self.txns,
            plain=self.table.is_insert_only, history_is_kept=True,
        )  # fmt: skip
        newer = [name for listing in listings for name in listing.state.newer]
        if newer and not self.is_kept():
            raise history_gone_error(newer, self.write_ids)
        return listings


@dataclass(frozen=True, slots=True)
class NeededRows:
    """What a query needs of a table's rows, and how they may be found.

    Attributes:
        demand: The rows and columns that matter; or a function that finds them. It is called only
            for many partitions or much data: otherwise it would cost more time than it saves.
        few: How many rows the driver may find itself; 0: it does not search.
        is_fast: False: read all rows, and join them with the delete events.
        virtual: The virtual columns that matter.
        with_deleted: Show deleted rows, too.
    """

    demand: Demand | Callable[[], Demand]
    few: int
    is_fast: bool
    virtual: Collection[str]
    with_deleted: bool

    def find_demand(self) -> Demand:
        """Return the demand, which a function may have to find."""
        return self.demand if isinstance(self.demand, Demand) else self.demand()


def read_rows(spark: SparkSession, snapshot: TableSnapshot, needed: NeededRows) -> DataFrame:
    """Return a snapshot's live rows, lazily, with the columns of ``scan`` or, of an insert-only
    table, of ``read_inserts_only``; list files now. Rows that the demand does not need may be
    missing.

    Raises:
        FormatError: ACID_NOT_ENOUGH_HISTORY: the cleaner does not keep the needed files any more.
        SnapshotTooOldError: A file or directory that the snapshot needs is gone.
    """
    table, is_fast, refuse_lost = snapshot.table, needed.is_fast, snapshot.refuse_lost
    directories = snapshot.partitions if table.partition_columns else [""]
    # Prune before listing: partitions that do not matter are not even listed.
    is_pruned = (is_fast and len(directories) > _few_partitions(table)) or refuse_lost is not None
    if is_pruned:
        condition = needed.find_demand().condition
        directories = matching_partitions(spark, table, directories, condition)
    if refuse_lost is not None:
        refuse_lost(directories)
    listings = snapshot.list_directories(directories)
    with naming_missing(table.location):
        if table.is_insert_only:
            files, sizes = plain_files_by_partition(listings)
            plain_files = PlainFiles(table, files, table.file_format, sizes if is_fast else {})
            return read_inserts_only(spark, plain_files, needed.virtual)
        request = Scan(
            table, listings, snapshot.write_ids,
            is_fast=is_fast, virtual=needed.virtual, with_deleted=needed.with_deleted,
        )  # fmt: skip
        if not is_fast or (not isinstance(needed.demand, Demand) and _is_little(listings)):
            return scan(spark, request)
        demand = needed.find_demand()
        if not is_pruned:
            listings = _needed_listings(spark, table, listings, demand)
        needed_listings = prune_buckets(listings, table, demand.condition)
        return scan(spark, replace(request, listings=needed_listings, demand=demand), needed.few)


def _is_little(listings: Sequence[Listing]) -> bool:
    return sum(file.size for listing in listings for file in listing.data) < MUCH_DATA


def _few_partitions(table: Table) -> int:
    """Return the number of partitions up to which reading them is faster than asking Spark which of
    them the query needs: MANY_PARTITIONS, or 1 on an object store.
    """
    return MANY_PARTITIONS if filesystem_for(table.location).has_directories else 1


def _needed_listings(
    spark: SparkSession, table: Table, listings: list[Listing], demand: Demand
) -> list[Listing]:
    """Return the listings of partitions that can have rows for which the demand's condition holds.
    An unpartitioned table keeps its listing."""
    if not table.partition_columns:
        return listings
    names = [listing.partition for listing in listings]
    needed_partitions = set(matching_partitions(spark, table, names, demand.condition))
    return [listing for listing in listings if listing.partition in needed_partitions]


@checked
def read(
    spark: SparkSession,
    path: str | Path,
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
        schema: The data columns in the table's order, because Hive matches columns by position: DDL
            text (``id int, name string``), a StructType, or pairs of a name and Hive's type. By
            default, the columns of the newest file.
        partitioned_by: The partition columns, in the same forms.
        insert_only: The table has ``transactional_properties=insert_only``.
        file_format: ``orc``, ``parquet`` or ``text``; ignored without ``insert_only``: then the
            files are ORC.
        valid_write_ids: The snapshot in Hive's form, ``db.t:highWaterMark:minOpen:open:aborted``;
            by default, everything is visible.
        valid_txns: The valid transactions in Hive's form, ``highWaterMark:minOpen:open:aborted``.

    Returns:
        The live rows, lazily, in no order. Columns: ``row__id`` (struct of writeid bigint, bucketid
        int, rowid bigint; not with ``insert_only``), the data columns, the partition columns.
        TIMESTAMP is shown as TIMESTAMP_NTZ.

    Raises:
        FormatError: The directory is missing or breaks Hive's rules, or no file has the columns.
        UnsupportedError: ``file_format`` is another format.
    """
    translate_file_errors()
    if scheme_and_root(str(path))[0] != "file":  # of others, Hadoop's settings decide
        hand_over_store_settings(spark)
    directory = list_bare_directory(
        str(path), schema, partitioned_by,
        insert_only=insert_only, file_format=file_format,
        valid_write_ids=valid_write_ids, valid_txns=valid_txns,
    )  # fmt: skip
    table = directory.table
    if insert_only:
        files, sizes = plain_files_by_partition(directory.listings)
        plain_files = PlainFiles(table, files, table.file_format, sizes, any_writer=True)
        with composed_text_conf(spark):
            return read_inserts_only(spark, plain_files)
    with composed_text_conf(spark), naming_missing(table.location):
        return scan(spark, Scan(table, directory.listings, directory.write_ids)).drop(*KEYS)


@dataclass(frozen=True, slots=True)
class BareDirectory:
    """What is in a table's directory, of which no metastore tells.

    Attributes:
        table: A table of these columns; its name is the directory.
        listings: The files of each partition.
        write_ids: The valid write ids.
    """

    table: Table
    listings: Sequence[Listing]
    write_ids: ValidWriteIdList


def list_bare_directory(
    path: str,
    schema: Schema | None = None,
    partitioned_by: Schema | None = None,
    *,
    insert_only: bool = False,
    file_format: str = ORC,
    valid_write_ids: str | None = None,
    valid_txns: str | None = None,
) -> BareDirectory:
    """List any Hive ACID directory, and find its columns. The arguments, and the errors, are those
    of ``read``."""
    path = sparks_location(path).rstrip("/")
    fs = filesystem_for(path)
    partition_columns = _schema_columns(partitioned_by) if partitioned_by else ()
    if not fs.exists(path):
        raise FormatError(f"There is no directory '{path}'.", path=path)
    partitions = discover_partitions(fs.list, path, [column.name for column in partition_columns])
    write_ids = ValidWriteIdList.parse(valid_write_ids) if valid_write_ids else _all_write_ids()
    txns = ValidTxnList.parse(valid_txns) if valid_txns else ALL_TXNS
    listings = list_table(fs, path, partitions, write_ids, txns, plain=insert_only)
    table = Table(TableName("", path), path, (), partition_columns)
    if insert_only:
        files, _ = plain_files_by_partition(listings)
        columns = _schema_columns(schema or _newest_plain_columns(files, path, file_format))
        properties = {TRANSACTIONAL_PROPERTIES: INSERT_ONLY}
        table = replace(table, columns=columns, properties=properties, file_format=file_format)
    else:
        columns = _schema_columns(schema or _newest_columns(listings, path))
        table = replace(table, columns=columns)
    return BareDirectory(table, listings, write_ids)


def _all_write_ids() -> ValidWriteIdList:
    return ValidWriteIdList(NONE_OPEN)


def _schema_columns(schema: Schema) -> tuple[Column, ...]:
    """Return columns from DDL text, a StructType, or pairs of a name and Hive's type; names and
    types in lower case, TIMESTAMP_NTZ as ``timestamp``. Raises FormatError for an unsupported type.
    """
    if isinstance(schema, str):
        schema = cast(StructType, StructType.fromDDL(schema))
    if isinstance(schema, StructType):
        pairs = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    else:
        pairs = list(schema)
    columns = tuple(Column(name.lower(), _hive_type_text(kind)) for name, kind in pairs)
    for column in columns:
        parse_type(column.type)  # raises an error that names an unsupported type
    return columns


def _hive_type_text(kind: str) -> str:
    return kind.lower().replace("timestamp_ntz", "timestamp")


def _newest_columns(listings: Sequence[Listing], path: str) -> list[tuple[str, str]]:
    """Return the columns (name and type) of the newest file of events; if there is none, of the
    newest original. Raises FormatError if there is no file.
    """
    files = [file for listing in listings for file in listing.data]
    if files:
        newest = max(files, key=lambda file: file.directory.max_write_id)
        return columns_of(newest.path, newest.length)
    originals = [group for listing in listings for group in listing.originals]
    if not originals:
        raise _no_files_error(path)
    return columns_of(max(originals, key=lambda group: group.write_id).paths[-1])


def _newest_plain_columns(
    files: Mapping[str, Sequence[str]], path: str, file_format: str
) -> list[tuple[str, str]]:
    """Return the columns (name and type) of the last file of the last partition of an insert-only
    table, which is the newest one of an unpartitioned table. Raises FormatError if there is no
    file, or the format is neither ORC nor Parquet: such a file does not name them.
    """
    if file_format not in (ORC, PARQUET):
        raise FormatError(f"A {file_format} file does not name its columns; pass schema=….")
    paths = [file for group in files.values() for file in group]
    if not paths:
        raise _no_files_error(path)
    # The base comes before the deltas, and deltas are sorted by write id: the last file is newest.
    return columns_of_parquet(paths[-1]) if file_format == PARQUET else columns_of(paths[-1])


def _no_files_error(path: str) -> FormatError:
    return FormatError(f"'{path}' has no file to take the columns from; pass schema=….", path=path)
