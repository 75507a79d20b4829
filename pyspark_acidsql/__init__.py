"""``format("acidsql")`` fails with an error that shows the right call.

Spark finds this package by its name when it looks for data sources in Python. A data source has
neither a transaction nor a driver that lives as long as a query, so acidsql is none.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource


class DefaultSource(DataSource):
    """The data source; each of its methods raises the error."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "acidsql"

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802 - PySpark's name
        """Refuse ``df.writeStream.format("acidsql")``."""
        raise NotImplementedError(
            "df.writeStream.format('acidsql') cannot write in transactions. Write "
            "acid.write_stream(df)….toTable('db.t'), or "
            "df.writeStream.foreachBatch(acid.sink('db.t'))….start()."
        )

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Refuse ``df.write.format("acidsql")``."""
        raise NotImplementedError(
            "df.write.format('acidsql') cannot write in transactions. Write "
            "df.createOrReplaceTempView('v') and acid.sql('INSERT INTO db.t SELECT * FROM v')."
        )

    def schema(self) -> Any:
        """Refuse ``spark.read.format("acidsql")``."""
        raise NotImplementedError(
            "spark.read.format('acidsql') has no snapshot. Write acid.table('db.t'), or "
            "acidsql.read(spark, path)."
        )
