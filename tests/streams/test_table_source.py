"""A table is the source of a stream: each inserted row comes once."""

from __future__ import annotations

import pytest
from over_hive import needs

pytestmark = [pytest.mark.spark, needs("keeps_versions")]

TABLE = "default.src"


def read(acid, **options):
    reader = acid.spark.readStream.format("acidsql").option("table", TABLE)
    return reader.option("warehouse", acid.warehouse).options(**options).load()


@pytest.fixture
def flow(acid, tmp_path):
    """Copy what is new into the table ``dst``, and tell the ids that ``dst`` has."""

    def run(place="chk", **options):
        writer = read(acid, **options).writeStream.foreachBatch(acid.sink("dst"))
        writer = writer.option("checkpointLocation", str(tmp_path / place))
        writer.trigger(availableNow=True).start().awaitTermination()
        return sorted(row.id for row in acid.sql("SELECT id FROM dst").collect())

    acid.sql("CREATE TABLE src (id INT, v STRING)")
    acid.sql("CREATE TABLE dst (id INT, v STRING)")
    return run


def test_each_insert_comes_once_across_restarts_late_commits_and_compaction(acid, flow):
    import acidsql

    acid.sql("INSERT INTO src VALUES (1, 'a'), (2, 'b')")
    acid.sql("DELETE FROM src WHERE id = 2")
    assert flow() == [1]  # the current rows
    with acidsql.connect(acid.spark, warehouse=acid.warehouse, compactor="off") as other:
        with other.transaction():
            other.sql("INSERT INTO src VALUES (3, 'late')")
            acid.sql("INSERT INTO src VALUES (4, 'early')")
            assert flow() == [1, 4]
        acid.sql("INSERT INTO src VALUES (5, 'e')")
    assert flow() == [1, 3, 4, 5]
    with acid.transaction():
        acid.sql("INSERT INTO src VALUES (6, 'f'), (7, 'never seen')")
        acid.sql("DELETE FROM src WHERE id = 7")
    acid.sql("ALTER TABLE src COMPACT 'major' AND WAIT")
    assert flow() == [1, 3, 4, 5, 6]
    assert flow() == [1, 3, 4, 5, 6]
    acid.sql("DROP TABLE src")
    acid.sql("CREATE TABLE src (id INT, v STRING)")
    with pytest.raises(Exception, match="dropped and made again"):
        flow()


def test_the_start_and_the_options_are_checked(acid, flow):
    acid.sql("INSERT INTO src VALUES (1, 'a')")
    acid.sql("INSERT INTO src VALUES (2, 'b')")
    assert flow("second", startingVersion="2") == [2]
    assert flow("latest", startingVersion="latest") == [2]
    for options, said in [
        ({"readChangeFeed": "true"}, "inserts only"),
        ({"startingVersion": "x"}, "neither a version nor latest"),
        ({"maxVersionsPerTrigger": "1"}, "no option"),
        ({"metastore": "postgresql://u:secret@h/d"}, "ACIDSQL_METASTORE"),
    ]:
        with pytest.raises(Exception, match=said) as caught:
            read(acid, **options)
        assert "secret" not in str(caught.value)
