"""A damaged Parquet file is one error that names the file, whichever fact of the file is asked
for."""

from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acidsql.errors import FormatError
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.tables import parquet

TRIES = 300
ROW = RowSchema.from_fields(
    [("i", "int"), ("s", "string"), ("d", "date"), ("m", "map<string,bigint>")]
)
HIVES = {"writer.date.proleptic": "false"}  # the statistics of its dates are read


def written(path, codec):
    rows = 50
    columns = [
        pa.array(range(rows), pa.int32()),
        [f"é{i % 7}" for i in range(rows)],
        [dt.date(2020, 1, 1)] * rows,
        pa.array([[("k", 1)]] * rows, pa.map_(pa.string(), pa.int64())),
    ]
    table = pa.table(columns, names=list(ROW.names)).replace_schema_metadata(HIVES)
    pq.write_table(table, path, compression=codec)
    return path.read_bytes()


def damaged(data, dice):
    """The bytes, cut off or changed, mostly near the end, where the footer is."""
    near_end = len(data) - 1 - min(len(data) - 1, int(dice.expovariate(1 / 200)))
    at = dice.choice([near_end, dice.randrange(len(data))])
    changed = bytearray(data)
    match dice.randrange(4):
        case 0:
            return data[:at]
        case 1:
            changed[at] ^= 1 << dice.randrange(8)
        case 2:
            changed[at : at + 8] = dice.randbytes(8)
        case _:
            changed[at : at + 12] = dice.choice([b"\xff", b"\x00"]) * 12
    return bytes(changed)


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_every_damage_is_a_format_error_with_the_path(tmp_path, codec):
    path = tmp_path / "000000_0"
    data, dice, refused = written(path, codec), random.Random(codec), 0
    name = str(path)
    asked = (
        lambda: list(parquet.read_parquet(name, ROW)),
        lambda: parquet.columns_of_parquet(name),
        lambda: parquet.rows_of_parquet(name),
        lambda: parquet.need_readable([name], ROW),
        lambda: parquet.misread_by_spark([name]),
    )
    for _ in range(TRIES):
        path.write_bytes(damaged(data, dice))
        for ask in asked:
            try:
                ask()
            except FormatError as error:
                assert name in str(error)
                refused += 1
    assert refused > TRIES
