"""``format("acidsql")``: a table as a stream. Else an error shows the right call.

Spark finds this package by its name when it looks for data sources in Python. A data source has
neither a transaction nor a driver that lives as long as a query, so it cannot write. As the source
of a stream it reads the rows that were inserted, or all changes
(``acidsql/streams/source/source.py``).
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql.datasource import DataSource

_VARIABLE = "ACIDSQL_METASTORE"
_NO_SNAPSHOT = (
    "spark.read.format('acidsql') has no snapshot. Write acid.table('db.t'), or "
    "acidsql.read(spark, path)."
)


class DefaultSource(DataSource):
    """The data source; all but streams from a table is an error."""

    _ddl: str | None = None  # the columns that Spark knows; Spark pickles the source with them

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
            "acid.insert_into('db.t', df)."
        )

    def reader(self, schema: Any) -> Any:
        """Raise NotImplementedError: ``spark.read.format("acidsql")`` is refused, with the right
        call in its place."""
        raise NotImplementedError(_NO_SNAPSHOT)

    def schema(self) -> str:
        """Return the columns of a stream of the option ``table``, as DDL, and keep them for
        ``streamReader``. This opens a stream and closes it again. Raise NotImplementedError without
        this option: a batch has no snapshot."""
        if "table" not in self.options:
            raise NotImplementedError(_NO_SNAPSHOT)
        stream = self._stream()
        ddl: str = stream.ddl
        stream.stop()
        self._ddl = ddl
        return ddl

    def streamReader(self, schema: Any) -> Any:  # noqa: N802 - PySpark's name
        """Return the reader of a stream of the table, a `TableStream`. Raise NotImplementedError if
        Spark has not called ``schema`` before, because the user gave a schema."""
        if self._ddl is None:
            raise NotImplementedError(
                "A stream has the columns of its table. Leave out .schema(…), and select."
            )
        return self._stream()

    def _stream(self) -> Any:
        """Return a new `TableStream` that the options describe, with the columns that ``schema``
        kept, if it was called."""
        from acidsql.streams.source.source import TableStream

        options = dict(self.options)
        return TableStream(partial(_open_stream_metastore, options), options, self._ddl)


def _open_stream_metastore(options: dict[str, str]) -> Any:
    """Open the metastore of the option ``metastore`` or, without it, of the environment variable
    ACIDSQL_METASTORE; without both, the SQLite file in the option ``warehouse``. Options of object
    stores hold for this process from then on. Names of options may be in any case.

    Raises:
        SettingError: The URL in the options has a password, an option is a secret, or the option
            warehouse is missing, which acidsql's own metastore needs.
    """
    from acidsql.api.opening import is_hive, open_hive, open_metastore, warehouse_location
    from acidsql.errors import SettingError
    from acidsql.settings import Settings

    _use_store_options(options)
    lower_options = {name.lower(): value for name, value in options.items()}
    option_url = lower_options.get("metastore")
    if option_url is not None and (
        urlsplit(option_url).password or "password" in option_url.lower()
    ):
        raise SettingError(
            "The option metastore has a password, which Spark would show. Set the environment "
            f"variable {_VARIABLE} before Spark starts.",
            name="metastore",
        )
    url = option_url or os.environ.get(_VARIABLE)
    if is_hive(url):
        return open_hive(url, None)[0]
    if "warehouse" not in lower_options:
        raise SettingError("A stream of a table needs the option warehouse.", name="warehouse")
    return open_metastore(url, warehouse_location(lower_options["warehouse"]), Settings.of({}))


def _use_store_options(options: dict[str, str]) -> None:
    """Let this process open object stores with those options that have Hadoop's names
    (``fs.s3a.…``): it has no Spark conf. Raise SettingError if one of them is a secret."""
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
