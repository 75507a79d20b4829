"""``format("acidsql")``: a table as a batch or as a stream. Writing is refused with the right call.

Spark finds this package by its name when it looks for data sources in Python. A data source has
neither a transaction nor a driver that lives as long as a query, so it cannot write. A batch has
the rows of one snapshot (``acidsql/streams/source/table_reader.py``). A stream has the rows that
were inserted, or all changes (``acidsql/streams/source/source.py``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from pyspark.sql.datasource import DataSource

# An option of ours among the defaults: the metastore's URL has a password.
IN_ENVIRONMENT = "metastore_in_environment"

_METASTORE_VARIABLE, _WAREHOUSE_VARIABLE = "ACIDSQL_METASTORE", "ACIDSQL_WAREHOUSE"


class DefaultSource(DataSource):
    """The data source.

    Attributes:
        defaults: Values of the options ``warehouse`` and ``metastore``. ``acidsql.connect``
            registers a subclass with those of its session.
    """

    defaults: Mapping[str, str] = MappingProxyType({})
    # What ``schema`` found. Spark pickles the source with them.
    _schema: Any = None
    _snapshot: Any = None

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "acidsql"

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802 - PySpark's name
        """Raise NotImplementedError: ``df.writeStream.format("acidsql")`` is refused, with the
        right call in its place."""
        raise NotImplementedError(
            "df.writeStream.format('acidsql') cannot write in transactions. Write "
            "acid.write_stream(df)….toTable('db.t'), or "
            "df.writeStream.foreachBatch(acid.sink('db.t'))….start()."
        )

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Raise NotImplementedError: ``df.write.format("acidsql")`` is refused, with the right call
        in its place."""
        raise NotImplementedError(
            "df.write.format('acidsql') cannot write in transactions. Write "
            "acid.insert_into('db.t', df), with overwrite=True to replace rows, or "
            "acid.create_table('db.t', df) for a new table. Or let Spark's own calls do so: "
            "acidsql.connect(spark, extend=True)."
        )

    def schema(self) -> Any:
        """Return the columns of the option ``table`` or ``path``, and keep them for
        ``streamReader`` or, with a snapshot, for ``reader``. Spark does not say which of the two
        follows: options that only streams have tell."""
        from acidsql.storage.spark.shown_schema import shown_schema
        from acidsql.streams.source.source_options import STREAM_ONLY

        if STREAM_ONLY.isdisjoint(self._own_options()):
            self._snapshot = self._reader().take_snapshot()
            self._schema = shown_schema(self._snapshot.shown.columns)
        else:
            stream = self._stream()
            self._schema = stream.schema
            stream.stop()
        return self._schema

    def reader(self, schema: Any) -> Any:
        """Return the reader of the rows. Raise NotImplementedError if Spark has not called
        ``schema`` before, because the user gave a schema."""
        self._refuse_users_schema()
        return self._reader()

    def streamReader(self, schema: Any) -> Any:  # noqa: N802 - PySpark's name
        """Return the reader of a stream of the table, a `TableStream`. Raise NotImplementedError if
        Spark has not called ``schema`` before, because the user gave a schema."""
        self._refuse_users_schema()
        return self._stream()

    def _refuse_users_schema(self) -> None:
        if self._schema is None:
            raise NotImplementedError(
                "format('acidsql') has the columns of the table. Leave out .schema(…), and select."
            )

    def _reader(self) -> Any:
        """Return a new reader that the options describe, a `TableReader` or, with the option
        ``path``, a `DirectoryReader`, with the snapshot that ``schema`` took, if it was called."""
        from acidsql.streams.source.batch_options import batch_options
        from acidsql.streams.source.directory_reader import DirectoryReader
        from acidsql.streams.source.table_reader import TableReader

        own_options = self._own_options()
        if "path" in own_options:
            _use_store_options(dict(self.options))
            return DirectoryReader(own_options, self._snapshot)
        open_store = partial(_open_metastore, self._options_and_defaults())
        return TableReader(open_store, batch_options(own_options), self._snapshot)

    def _stream(self) -> Any:
        """Return a new `TableStream` that the options describe, with the columns that ``schema``
        kept, if it was called."""
        from acidsql.streams.source.source import TableStream

        options = self._options_and_defaults()
        return TableStream(partial(_open_metastore, options), self._own_options(), self._schema)

    def _own_options(self) -> dict[str, str]:
        """Return the options, by their names in lower case, but for those of object stores and
        HDFS."""
        from acidsql.storage.files.options.store_options import PREFIXES

        return {
            name.lower(): value
            for name, value in dict(self.options).items()
            if not name.startswith(PREFIXES)
        }

    def _options_and_defaults(self) -> dict[str, str]:
        """Return all options as the user wrote them; and the defaults, unless an option names a
        metastore or a warehouse."""
        options = dict(self.options)
        if {name.lower() for name in options}.isdisjoint(("metastore", "warehouse")):
            options = {**self.defaults, **options}
        return options


def _open_metastore(options: dict[str, str]) -> Any:
    """Open the metastore of the option ``metastore`` or, without it, of the environment variable
    ACIDSQL_METASTORE; without both, the SQLite file in the option ``warehouse`` or, without it, in
    the environment variable ACIDSQL_WAREHOUSE. Options of object stores and HDFS hold for this
    process from then on. Names of options may be in any case.

    Raises:
        SettingError: The URL in the options has a password, or that of the session has one and the
            environment has none; an option is a secret; no warehouse is named, which acidsql's own
            metastore needs; or there is no metastore in the warehouse: a reader makes none.
    """
    from acidsql.api.opening import (
        has_password,
        is_hive,
        open_metastore_without_spark,
    )
    from acidsql.errors import SettingError

    _use_store_options(options)
    lower_options = {name.lower(): value for name, value in options.items()}
    option_url = lower_options.get("metastore")
    if option_url is not None and has_password(option_url):
        raise SettingError(
            "The option metastore has a password, which Spark would show. Set the environment "
            f"variable {_METASTORE_VARIABLE} before Spark starts.",
            name="metastore",
        )
    url = option_url or os.environ.get(_METASTORE_VARIABLE)
    if url is None and IN_ENVIRONMENT in options:
        raise SettingError(
            "The URL of the session's metastore has a password, which Spark would show. Set the "
            f"environment variable {_METASTORE_VARIABLE} before Spark starts.",
            name="metastore",
        )
    if is_hive(url):
        return open_metastore_without_spark(url, None)
    warehouse = lower_options.get("warehouse") or os.environ.get(_WAREHOUSE_VARIABLE)
    if warehouse is None:
        raise SettingError(
            "format('acidsql') needs the option warehouse, or the environment variable "
            f"{_WAREHOUSE_VARIABLE}.",
            name="warehouse",
        )
    return open_metastore_without_spark(url, warehouse)


def _use_store_options(options: dict[str, str]) -> None:
    """Let this process open object stores and HDFS with those options that have Hadoop's names
    (``fs.s3a.…``, ``dfs.…``): it has no Spark conf. Raise SettingError if one of them is a
    secret."""
    from acidsql.errors import SettingError
    from acidsql.storage.files.options.hadoop_conf import is_secret
    from acidsql.storage.files.options.store_options import PREFIXES, register

    store_options = {name: value for name, value in options.items() if name.startswith(PREFIXES)}
    for name in filter(is_secret, store_options):
        raise SettingError(
            f"The option {name} is a secret, which Spark would show. Set the store's environment "
            "variables (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for S3) before Spark starts.",
            name=name,
        )
    register(store_options)
