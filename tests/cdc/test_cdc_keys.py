"""AUTO CDC by keys of every type, with the values that are easily taken for others, against a
dictionary. Records stay in the driver in one batch, and go through jobs in the next one."""

from __future__ import annotations

import random

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.needs("keeps_state_tables")]

BATCHES = 3
# SQL of values, and what tells them apart: equal names are equal keys.
POOLS = {
    "DOUBLE": {
        "double('NaN')": "NaN", "double('-0.0')": "0", "0D": "0", "double('-Infinity')": "-inf",
        "1e-320D": "tiny", "1.5D": "1.5",
    },
    "STRING": {
        "'a'": "a", "'a '": "a and a blank", "'A'": "A", "'\u00e9'": "composed",
        "'e\u0301'": "decomposed", r"'\u0000'": "NUL", "''": "empty", "'NULL'": "NULL",
    },
    "BINARY": {"X'00'": "00", "X''": "empty", "X'FFFE'": "no UTF-8", "binary('a')": "a"},
    "DECIMAL(38,18)": {
        "1BD": "1", "1.000000000000000000BD": "1", "0BD": "0",
        "12345678901234567890.123456789012345678BD": "8",
        "12345678901234567890.123456789012345679BD": "9",
    },
    "CHAR(4)": {"'a'": "a", "'a  '": "a", "'ab'": "ab", "' a'": "a blank and a"},
    "TIMESTAMP": {
        "TIMESTAMP_NTZ'0001-01-01 00:00:00'": "1", "TIMESTAMP_NTZ'2024-03-31 02:30:00'": "gap",
        "TIMESTAMP_NTZ'2024-03-31 03:30:00'": "behind the gap",
        "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'": "last",
    },
    "partition DATE": {
        "DATE'0001-01-01'": "first", "DATE'1582-10-04'": "Julian", "DATE'2024-01-01'": "2024",
    },
    "partition TINYINT": {"tinyint(-128)": "least", "0Y": "0", "127Y": "most"},
    "partition STRING": {"'a b'": "a b", "'a%20b'": "%", "'a/b=c'": "/", "'01'": "01", "'1'": "1"},
}  # fmt: skip


@pytest.mark.parametrize("kind", POOLS)
def test_a_table_has_the_newest_record_of_each_key(acid, kind):
    dice, pool = random.Random(kind), list(POOLS[kind].items())
    is_partition, of = kind.startswith("partition"), kind.removeprefix("partition ")
    rest = f"(v STRING) PARTITIONED BY (k {of})" if is_partition else f"(k {of}, v STRING)"
    acid.sql(f"CREATE TABLE t {rest}")
    given = {"CHAR(4)": "STRING", "TIMESTAMP": "TIMESTAMP_NTZ"}.get(of, of)
    number, newest = 0, {}
    for batch in range(BATCHES):
        records = []
        for _ in range(dice.choice([1, 4, 9])):
            number += 1
            sql, key = dice.choice(pool)
            at = number if dice.random() < 0.8 else 100 * dice.randint(0, number) + number
            op = "d" if batch == 0 and is_partition else dice.choice("uud")  # no partition yet
            records.append(f"SELECT CAST({sql} AS {given}) k, 'v{at}' v, {at} at, '{op}' op")
            if at > newest.get(key, (-1, ""))[0]:
                newest[key] = (at, op)
        acid.sql(f"SET acidsql.driver.max.rows = {1000 if batch % 2 else 0}")
        acid.sql(
            f"AUTO CDC INTO t FROM ({' UNION ALL '.join(records)}) KEYS (k) "
            "APPLY AS DELETE WHEN op = 'd' SEQUENCE BY at COLUMNS * EXCEPT (at, op)"
        )
        found = sorted(row.v for row in acid.sql("SELECT v FROM t").collect())
        assert found == sorted(f"v{at}" for at, op in newest.values() if op == "u")
