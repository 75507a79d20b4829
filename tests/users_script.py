"""A user's program, which is not run: tests/test_wheel.py lets type checkers read it.

A comment says which type a checker must reveal in its line (``# reveals:``), or which word must be
in the error that it reports there (``# error:``). In all other lines there is no error.
"""

from __future__ import annotations

from typing import reveal_type

import pandas as pd  # type: ignore[import-untyped,unused-ignore]
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import acidsql
from acidsql import CommitPoints, Receipt, Session

spark = SparkSession.builder.getOrCreate()
acid = acidsql.connect(spark, warehouse="/warehouse", retries=3)
news = spark.createDataFrame([(1, "x")], "id INT, name STRING")

reveal_type(acid)  # reveals: Session
reveal_type(acid.table("t"))  # reveals: DataFrame
reveal_type(acid.sql("SELECT * FROM {news} WHERE id > ?", [1], news=news))  # reveals: DataFrame
reveal_type(acid.last)  # reveals: Receipt | None
reveal_type(acid.costs)  # reveals: Costs | None
reveal_type(acid.merge_into(news, "t", "t.id = source.id"))  # reveals: MergeIntoWriter
reveal_type(acid.history("t", limit=3))  # reveals: DataFrame
reveal_type(acid.txn_state(1))  # reveals: str | None
reveal_type(acidsql.read(spark, "/t"))  # reveals: DataFrame
reveal_type(CommitPoints("record = 'END'"))  # reveals: CommitPoints
with acid.transaction() as txn:
    reveal_type(txn)  # reveals: Transaction
    reveal_type(txn.id)  # reveals: int
with acidsql.connect() as other:
    reveal_type(other)  # reveals: Session
try:
    acid.sql("DELETE FROM t")
except acidsql.TransientTxnError as error:
    reveal_type(error)  # reveals: TransientTxnError

acid.update("t", {"name": F.lit("y"), "n": "n + 1"}, where="id = 1")
acid.insert_into("t", pd.DataFrame({"id": [1]}))
acid.insert_into("t", [{"id": 1}])
acid.merge_into(news, "t", "t.id = source.id").whenMatchedUpdateAll().execute()
acid.merge_into(news, "t", "t.id = source.id").whenMatched().updateAll().merge()

acidsql.conect(spark)  # error: conect
acidsql.connect(spark, warehuose="/warehouse")  # error: warehuose
acidsql.connect("/warehouse")  # error: SparkSession
acid.tabel("t")  # error: tabel
acid.sql(42)  # error: str
acid.sql("SELECT 1", retries="3")  # error: int
acid.update("t", {"id": 1})  # error: Column
acid.insert_into("t", 3)  # error: DataFrame
acid.merge_into(news, "t", "true").whenMatched().updateEverything()  # error: updateEverything
acid.last.txn_id  # error: None  # noqa: B018


def count_changes(session: Session, receipt: Receipt) -> int:
    """Return a number that is one of the receipt's, not a text."""
    return receipt.statement  # error: int
