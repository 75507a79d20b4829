"""``docs/object-stores.md``: its code runs, from top to bottom."""

from __future__ import annotations

from pages import DOCS, blocks

import acidsql

PAGE = DOCS / "object-stores.md"


def test_the_page_about_object_stores_runs(spark, s3a, tmp_path):
    """``s3a://bucket`` is the test's bucket, the database a file, and Spark is there already."""
    (block,) = blocks(PAGE)
    start = block.text.index("acid = ")
    text = block.text[start:].replace("s3a://bucket", s3a)
    text = text.replace(
        "postgresql+psycopg://user:secret@db1/acidsql", f"sqlite:///{tmp_path}/m.db"
    )
    names = {"spark": spark, "acidsql": acidsql}
    exec(compile(text, str(PAGE), "exec"), names)
    with names["acid"] as acid:
        rows = acid.sql("SELECT * FROM planes ORDER BY tailnum").collect()
    assert [tuple(row) for row in rows] == [("N10156", 55), ("N102UW", 180)]
