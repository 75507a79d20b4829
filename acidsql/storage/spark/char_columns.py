"""CHAR columns: Spark compares and pads them as such if the columns' metadata says so."""

from __future__ import annotations

from pyspark.sql import DataFrame

from acidsql.acid.table import Table
from acidsql.storage.columns import quote
from acidsql.storage.spark.session.jvm import is_remote

_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"  # CharVarcharUtils


def char_metadata(hive_type: str) -> dict[str, str]:
    """Return the metadata of a column that say of a CHAR that the column is one; of another type,
    none."""
    return {_CHAR_TYPE: hive_type} if hive_type.startswith("char") else {}


def mark_char_columns(rows: DataFrame, table: Table) -> DataFrame:
    """Return a DataFrame whose metadata says of the table's CHAR columns that they are CHAR; Spark
    would take them for strings. Values stay as they are. Columns are found by name; CHARs inside of
    nested columns are not marked. Without a CHAR column it is ``rows`` itself.

    Spark then pads the values that a CHAR is compared with, as it does for its own tables.
    """
    metadata = {column.name: char_metadata(column.type) for column in table.all_columns}
    names = rows.columns if any(metadata.values()) else []
    marked = {
        name: rows[quote(name)].alias(name, metadata=metadata[name])
        for name in names
        if metadata.get(name)
    }
    if marked and is_remote(rows.sparkSession):  # whose withColumns would lose the metadata
        return rows.select(*(marked.get(name, rows[quote(name)]) for name in names))
    return rows.withColumns(marked) if marked else rows
