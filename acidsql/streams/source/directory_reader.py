"""A directory of ACID files as the source of a batch, without a metastore: the option ``path`` of
``spark.read.format("acidsql")``. It shows what ``acidsql.read`` shows, but for ``row__id``.

The files are listed when the DataFrame or view is made, as ``acidsql.read`` does. No lease keeps
them: a query that finds one gone fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from acidsql.errors import AcidSqlError, SettingError
from acidsql.sql.commands.columns import parse_columns_in_brackets
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.text.tokens import tokenize
from acidsql.storage.folding.live_rows import LiveRows, plan_tasks
from acidsql.storage.folding.stream_reads import StreamRead
from acidsql.storage.reading.read import list_bare_directory
from acidsql.streams.source.batch_options import chosen_columns
from acidsql.streams.source.split_reader import Split, SplitReader, choose_columns

# The arguments of ``acidsql.read``.
_OPTIONS = (
    "path", "columns", "schema", "partitioned_by", "insert_only", "file_format", "valid_write_ids",
    "valid_txns",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShownDirectory:
    """What a DataFrame or view shows. Spark keeps it with the DataFrame, as pickled bytes.

    Attributes:
        shown: The directory as a table, and its columns.
        tasks: The files that each task reads.
    """

    shown: LiveRows
    tasks: Sequence[Sequence[StreamRead]]


class DirectoryReader(SplitReader):
    """The rows of a directory.

    Args:
        options: The options by their names in lower case.
        snapshot: The result of ``take_snapshot``, without which rows cannot be read.

    Raises:
        SettingError: There is no such option, or ``insert_only`` is neither true nor false.
    """

    def __init__(self, options: Mapping[str, str], snapshot: ShownDirectory | None = None) -> None:
        for name in sorted(set(options) - set(_OPTIONS)):
            raise SettingError(
                f"spark.read.format('acidsql') with a path has no option '{name}'. It has: "
                f"{', '.join(_OPTIONS)}. Without a path, the option table names a table.",
                name=name,
            )
        self._options, self._snapshot = options, snapshot

    def take_snapshot(self) -> ShownDirectory:
        """List the directory, and find its columns.

        Raises:
            CatalogError: The option ``columns`` names a column that the files lack.
            SettingError: An option is wrong.
            UnsupportedError: Python tasks cannot show the files.
            FormatError, SnapshotTooOldError: As of ``acidsql.read``.
        """
        options = self._options
        directory = list_bare_directory(
            options["path"],
            self._columns("schema"),
            self._columns("partitioned_by"),
            insert_only=self._is_insert_only(),
            file_format=options.get("file_format", "orc").lower(),
            valid_write_ids=options.get("valid_write_ids"),
            valid_txns=options.get("valid_txns"),
        )
        names = None if "columns" not in options else chosen_columns(options["columns"])
        table, path = directory.table, directory.table.location
        columns = choose_columns(table, names, f"'{path}'")
        shown = LiveRows(table, columns, f"acidsql.read(spark, '{path}')")
        return ShownDirectory(shown, plan_tasks(shown, directory.listings, directory.write_ids))

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks that read the files, a ``Split`` each."""
        assert self._snapshot is not None, "Spark asks for the schema first"
        return [Split(self._snapshot.shown, reads) for reads in self._snapshot.tasks]

    def _columns(self, name: str) -> list[tuple[str, str]] | None:
        """Return the columns of an option, which has them as DDL: names and types. None: it is not
        given. Raise SettingError if it is no list of columns."""
        if name not in self._options:
            return None
        text = f"({self._options[name]})"
        cursor = Cursor(text, tokenize(text))
        try:
            columns = parse_columns_in_brackets(cursor)
            cursor.expect_end()
        except AcidSqlError as error:
            raise SettingError(
                f"The option {name} is no list of columns, such as id INT, day STRING: "
                f"{self._options[name]}",
                name=name,
            ) from error
        return [(column.name, column.type.slice(text)) for column in columns]

    def _is_insert_only(self) -> bool:
        text = self._options.get("insert_only", "false")
        if text.lower() not in ("true", "false"):
            raise SettingError(
                f"insert_only='{text}' is neither true nor false.", name="insert_only"
            )
        return text.lower() == "true"
