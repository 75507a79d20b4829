"""Each kind of damage is found under its name, and nothing else is."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pytest
from checked import Files
from pyarrow import orc

from acidsql.acid.findings import CONDITIONS, Finding, sort_findings
from acidsql.acid.layout import PAIRED_FILE
from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.storage.checking import job
from acidsql.storage.checking.directories import CatalogFacts
from acidsql.storage.checking.statistics import Totals
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.orc.encoding.footer import read_checked_footer, read_footer
from acidsql.storage.orc.encoding.stripe import ROW_INDEX, read_stripe_footer
from acidsql.storage.reading.pruning.inventory import inventory

GOLDEN = Path(__file__).parent.parent / "golden"
D1, D2, D3 = (f"delta_000000{n}_000000{n}_0000" for n in (1, 2, 3))
X2, X3, X4 = (f"delete_delta_000000{n}_000000{n}_0000" for n in (2, 3, 4))


def rows(write_id, bucket, count):
    return [(write_id, bucket, number) for number in range(count)]


def test_a_sound_table_has_no_findings(files):
    files.insert(f"{D1}/bucket_00000", rows(1, 0, 9))
    files.insert(f"{D1}/bucket_00001", rows(1, 1, 9))
    files.delete(f"{X2}/bucket_00000", [(1, 0, 3), (1, 0, 8)], 2)
    files.delete(f"{X3}/bucket_00001", [(1, 1, 0)], 3)
    files.insert("delta_0000004_0000006/bucket_00000", [(4, 0, 0), (6, 0, 0)])
    files.delete("delete_delta_0000004_0000006/bucket_00000", [(1, 0, 1), (4, 0, 0)], [5, 6])
    files.plain("000000_0", 4)
    files.plain("000001_0_copy_1", 4)
    files.delete(f"{X4}/bucket_00000", [(0, 0, 3)], 4)
    assert files.check() == []


def test_damage_of_files_and_rows_is_found_by_name(files):
    files.insert(f"{D1}/bucket_00000", [(1, 0, 0), (1, 0, 2), (1, 0, 1)])
    files.insert(f"{D1}/bucket_00001", [(1, 2, 0)])
    files.insert(f"{D1}/bucket_00002", [(1, 2, 0), (1, 2, 0)])
    files.insert(f"{D1}/bucket_00003", [(1, 3, 0), (9, 3, 0)])
    files.delete(f"{D1}/bucket_00004", [(1, 4, 0)], 1)
    files.insert(f"{X2}/bucket_00005", [(2, 5, 0)])
    files.delete(f"{X2}/bucket_00006", [(1, 7, 0)], 2)  # under the wrong bucket
    files.delete(f"{X2}/bucket_00007", [(1, 7, 0), (1, 7, 0)], 2)
    cut = files.insert(f"{D1}/bucket_00009", rows(1, 9, 300))
    cut.write_bytes(cut.read_bytes()[:-40])
    files.put(f"{D1}/bucket_00010", b"no ORC at all")
    files.put(f"{D1}/bucket_00011", b"")
    files.plain(f"{D1}/bucket_00012", 3)
    files.insert(f"{D1}/000013_0", [(1, 13, 0)])
    wrong = {
        ("NO_EVENTS", f"{D1}/bucket_00012"),
        ("ROWS_OUT_OF_ORDER", f"{D1}/bucket_00000"),
        ("UNREADABLE_FILE", f"{D1}/bucket_00009"),
        ("UNREADABLE_FILE", f"{D1}/bucket_00010"),
        ("WRITE_ID_OUT_OF_RANGE", f"{D1}/bucket_00003"),
        ("WRONG_BUCKET_ID", f"{D1}/bucket_00001"),
        ("WRONG_BUCKET_ID", f"{X2}/bucket_00006"),
        ("WRONG_OPERATION", f"{D1}/bucket_00004"),
        ("WRONG_OPERATION", f"{X2}/bucket_00005"),
        ("DUPLICATE_ROW_ID", f"{D1}/bucket_00002"),
        ("REPEATED_DELETE", f"{X2}/bucket_00007"),
        ("EMPTY_FILE", f"{D1}/bucket_00011"),
        ("EVENTS_IN_A_PLAIN_FILE", f"{D1}/000013_0"),
        ("NOT_COMPARED", ""),
    }
    assert set(files.check()) == wrong


def test_row_ids_of_a_bucket_are_compared_across_its_files(files):
    """Also if they come in many batches."""
    files.insert(f"{D1}/bucket_00000", rows(1, 0, 200_000))
    files.insert("delta_0000001_0000001_0001/bucket_00000", [(1, 0, 7)])  # again
    files.delete(f"{X2}/bucket_00000", [(1, 0, 5), (1, 0, 199_999), (2, 0, 0)], 2)  # no such row
    files.delete(f"{X3}/bucket_00000", [(1, 0, 199_999), (3, 0, 1)], 3)  # twice; no such row
    files.delete(f"{X3}/bucket_00001", [(1, 1, 5)], 3)  # no file of rows
    found = {one.condition + one.message[:12]: one for one in files.findings()}
    assert set(found) == {
        "DUPLICATE_ROW_IDIn bucket 0,", "TWIN_DELETEIn bucket 0,",
        "DELETE_OF_NO_ROWIn bucket 0,", "DELETE_OF_NO_ROWIn bucket 1,",
    }  # fmt: skip
    assert "row id (2, 536870912, 0) is deleted" in found["DELETE_OF_NO_ROWIn bucket 0,"].message
    assert "There are 2" in found["DELETE_OF_NO_ROWIn bucket 0,"].message
    twin = "row id (1, 536870912, 199999) is deleted by two write ids, 2 and 3"
    assert twin in found["TWIN_DELETEIn bucket 0,"].message
    assert files.check(all_rows=False) == []


def test_events_that_a_snapshot_does_not_see_are_not_compared(files):
    files.insert("delta_0000001_0000003/bucket_00000", [(1, 0, 0), (2, 0, 0)])
    files.delete("delete_delta_0000001_0000003/bucket_00000", [(1, 0, 0), (9, 0, 0)], [3, 9])
    files.delete("delete_delta_0000004_0000004_0000/bucket_00000", [(1, 0, 0)], 4)
    ids = ValidWriteIdList(20, open=(4,), aborted=(3,))
    found = files.check(write_ids=ids)
    assert found == [("WRITE_ID_OUT_OF_RANGE", "delete_delta_0000001_0000003/bucket_00000"),
                     ("NOT_COMPARED", "")]  # fmt: skip


def test_a_footer_is_compared_with_the_contents(files):
    path = files.insert(f"{D1}/bucket_00000", rows(1, 0, 3))
    data = path.read_bytes()
    assert data.count(b"1,536870912,2;") == 1 and data.count(b"3,0,0") == 1
    path.write_bytes(data.replace(b"1,536870912,2;", b"1,536870912,1;"))
    assert files.check() == [("FOOTER_CONTRADICTS_CONTENTS", f"{D1}/bucket_00000"),
                             ("NOT_COMPARED", "")]  # fmt: skip
    assert files.check(all_rows=False) == []
    path.write_bytes(data.replace(b"3,0,0", b"4,0,0"))
    assert files.check(all_rows=False) == [("FOOTER_CONTRADICTS_CONTENTS", f"{D1}/bucket_00000")]


def test_the_index_of_a_file_that_is_not_sorted_is_no_reason_for_a_backup(files):
    """As Trino writes files of delete events: its index has the highest row id."""
    files.insert(f"{D1}/bucket_00000", rows(1, 0, 3))
    path = files.delete(f"{X2}/bucket_00000", [(1, 0, 2), (1, 0, 1)], 2)
    data = path.read_bytes()
    assert data.count(b"1,536870912,1;") == 1
    path.write_bytes(data.replace(b"1,536870912,1;", b"1,536870912,2;"))
    found = {finding.condition: finding.advice for finding in files.findings()}
    assert set(found) == {"ROWS_OUT_OF_ORDER", "WRONG_KEY_INDEX", "NOT_COMPARED"}
    assert all("backup" not in advice for advice in found.values())
    assert "COMPACT 'major'" in found["WRONG_KEY_INDEX"]


def test_a_flipped_bit_is_found_if_it_contradicts_the_statistics(files):
    path = files.insert(f"{D1}/bucket_00000", rows(1, 0, 3))
    data = path.read_bytes()
    at = data.index(b"value 0value 1")
    assert files.check() == []
    path.write_bytes(data[:at] + b"Value" + data[at + 5 :])
    assert "column(s) 'v'" in files.findings()[0].message
    path.write_bytes(data[: at + 13] + b"2" + data[at + 14 :])
    assert files.check() == []  # neither the first nor the last text, and as long as before
    with path.open("rb") as opened:
        footer, _, script = read_checked_footer(opened, len(data))
        streams = read_stripe_footer(lambda a, b: data[a:b], footer.stripes[0], script.compression)
    (write_ids,) = (s for s in streams.streams if (s.column, s.kind) == (2, 1))
    changed = bytearray(data)
    changed[footer.stripes[0].offset + write_ids.offset + write_ids.length - 1] ^= 2
    path.write_bytes(changed)
    assert any("column(s) 'originalTransaction'" in one.message for one in files.findings())
    path.write_bytes(data)

    (index,) = (s for s in streams.streams if (s.column, s.kind) == (1, ROW_INDEX))
    changed = bytearray(data)
    changed[footer.stripes[0].offset + index.offset] ^= 7  # no reader of all rows would notice
    path.write_bytes(changed)
    found = {one.condition: one.message for one in files.findings()}
    assert "an index is damaged" in found["UNREADABLE_FILE"]


def test_statistics_have_bounds_sums_and_numbers_of_values():
    values = pa.array([5, None, -(2**63), 2**63 - 1], pa.int64())
    sink = BytesIO()
    orc.write_table(pa.table({"i": values, "s": pa.array(["é", None, "", "abc"])}), sink)
    footer = read_footer(sink, len(sink.getvalue()))
    columns = [(1, "i", "bigint"), (2, "s", "string")]

    def wrong(*batches):
        totals = Totals(footer, columns)
        for batch in batches:
            totals.add(batch)
        return totals.wrong

    texts = pa.array(["é", None, "", "abc"])
    assert wrong([values[:2], texts[:2]], [values[2:], texts[2:]]) == []
    assert wrong([pa.array([5, None, -(2**63), 2**63 - 2]), texts]) == ["i"]
    assert wrong([pa.array([6, None, -(2**63), 2**63 - 1]), texts]) == ["i"]
    assert wrong([values, pa.array(["é", "", "", "abc"])]) == ["s"]
    assert wrong([values, pa.array(["e", None, "", "abc"])]) == ["s"]
    assert wrong([values, pa.array(["è", None, "", "abc"])]) == ["s"]
    assert Totals(footer, [(1, "i", "int")]).wrong == []  # the table's column has another type


def test_directories_are_found_that_no_transaction_wrote(files):
    for name in (
        D1, "delta_0000021_0000021_0000", "delta_0000002_0000005_v0000101",
        "delta_0000007_0000007_0000", "delta_0000008_0000008_0000",
    ):  # fmt: skip
        files.insert(f"{name}/bucket_00000", rows(int(name.split("_")[1]), 0, 1))
    files.put(f"{D1}/bucket_00000.tmp")
    files.put(f"{D1}/_SUCCESS")
    files.put("_tmp_0000007_0000_abc/insert-0")
    files.put(".hive-staging/x")
    ids = ValidWriteIdList(20, open=(8,), aborted=(7,))
    assert files.check(write_ids=ids, txns=ValidTxnList(100)) == [
        ("TRANSACTION_NEVER_OPENED", "delta_0000002_0000005_v0000101"),
        ("WRITE_ID_NEVER_ALLOCATED", "delta_0000021_0000021_0000"),
        ("STRAY_FILE", f"{D1}/bucket_00000.tmp"),
        ("ABORTED_DIRECTORY", "delta_0000007_0000007_0000"),
    ]


def test_pairs_and_overlaps(files):
    for number in range(1, 6):
        name = f"delta_000000{number}_000000{number}_0000/bucket_00000"
        files.insert(name, rows(number, 0, 2))
        files.delete(f"delete_{name}", [(number, 0, 0)], number)
    wide = "delta_0000001_0000003"
    files.insert(f"{wide}/bucket_00000", [(n, 0, 1) for n in (1, 2, 3)])
    files.put(f"{wide}/{PAIRED_FILE}", b"")
    assert files.check() == [("HALF_OF_A_PAIR", wide)]

    files.delete(f"delete_{wide}/bucket_00000", [(1, 0, 1)], 3)
    assert files.check() == [("PAIR_MARK_MISSING", f"delete_{wide}")]
    files.put(f"delete_{wide}/{PAIRED_FILE}", b"")
    assert files.check() == []

    other = "delta_0000003_0000006"
    files.insert(f"{other}/bucket_00000", [(6, 0, 1)])
    assert files.check() == [("OVERLAPPING_DELTAS", other)]

    files.insert("base_0000006_v0000001/bucket_00000", rows(6, 0, 1))
    (files.root / f"delete_{wide}" / PAIRED_FILE).unlink()
    assert files.check() == []  # the base has replaced them, and the cleaner deletes them
    lost = "delete_delta_0000007_0000009"
    files.delete(f"{lost}/bucket_00000", [(6, 0, 0)], 8)
    files.put(f"{lost}/{PAIRED_FILE}", b"")
    assert files.check() == [("LOST_HALF_OF_A_PAIR", lost)]


def test_marks_of_versions_and_names_of_originals(files):
    files.insert(f"{D1}/bucket_00000", rows(1, 0, 2))
    (files.root / D1 / "_orc_acid_version").unlink()
    files.plain("part-00000.orc", 2)
    assert sorted(files.check()) == [
        ("NAME_WITHOUT_BUCKET", "part-00000.orc"),
        ("NOT_COMPARED", ""),
        ("VERSION_MARK_MISSING", f"{D1}/bucket_00000"),
    ]


def test_a_file_that_is_gone_when_its_turn_comes_is_found(files, monkeypatch):
    path = files.insert(f"{D1}/bucket_00000", rows(1, 0, 2))
    run = job._run_check_job
    monkeypatch.setattr(job, "_run_check_job", lambda *args: (path.unlink(), run(*args))[1])
    assert files.check() == [("FILE_GONE", f"{D1}/bucket_00000"), ("NOT_COMPARED", "")]


def test_partitions_are_compared_with_the_catalog(tmp_path):
    files = Files(tmp_path / "t", partition_columns=["p", "q"])
    files.insert(f"p=1/q=1/{D1}/bucket_00000", rows(1, 0, 2))
    files.insert(f"p=1/q=2/{D1}/bucket_00000", rows(1, 0, 2))
    files.insert("p=1/q=3/delta_0000009_0000009_0000/bucket_00000", rows(9, 0, 2))  # open
    files.insert("p=2/q=3/delta_0000008_0000008_0000/bucket_00000", rows(8, 0, 2))  # aborted
    (files.root / "p=1" / "q=4").mkdir()
    files.put("p=1/foreign/a")
    files.put("p=1/foreign/b")
    files.put("p=1/foreign.txt")
    ids = ValidWriteIdList(20, open=(9,), aborted=(8,))
    assert files.check(partitions=["p=1/q=1", "p=7/q=7"], write_ids=ids) == [
        ("PARTITION_WITHOUT_DIRECTORY", "p=7/q=7"),
        ("STRAY_FILE", "p=1/foreign"),
        ("STRAY_FILE", "p=1/foreign.txt"),
        ("PARTITION_NOT_IN_CATALOG", "p=1/q=2"),
        ("ABORTED_DIRECTORY", "p=2/q=3/delta_0000008_0000008_0000"),
    ]
    (tmp_path / "t").rename(tmp_path / "away")
    assert files.check(partitions=["p=1/q=1"]) == [("TABLE_DIRECTORY_MISSING", "")]


def test_a_place_that_readers_refuse_is_one_finding_and_its_files_are_still_looked_at(files):
    files.insert("base_0000001/bucket_00000", [(1, 0, 1), (1, 0, 0)])
    files.put("base_0000001/foreign")
    assert set(files.check()) == {
        ("UNREADABLE_DIRECTORY", "base_0000001/foreign"),
        ("ROWS_OUT_OF_ORDER", "base_0000001/bucket_00000"),
        ("STRAY_FILE", "base_0000001/foreign"),
    }


def test_buckets_of_clustered_tables(tmp_path):
    files = Files(tmp_path / "t", buckets=["v"])
    files.insert(f"{D1}/bucket_00000", rows(1, 0, 20))  # rows of all buckets
    files.insert(f"{D1}/bucket_00004", rows(1, 4, 1))
    assert files.check() == [
        ("ROW_IN_WRONG_BUCKET", f"{D1}/bucket_00000"),
        ("ROW_IN_WRONG_BUCKET", f"{D1}/bucket_00004"),
        ("UNKNOWN_BUCKET", f"{D1}/bucket_00004"),
        ("NOT_COMPARED", ""),
        ("NOT_COMPARED", ""),
    ]


def test_an_insert_only_table(tmp_path):
    files = Files(tmp_path / "t", transactional_properties="insert_only")
    files.plain(f"{D1}/000000_0", 3)
    files.plain(f"{D1}/HIVE_UNION_SUBDIR_1/000000_0", 3)
    assert files.check() == []
    files.plain("000000_0", 3)
    damaged = files.plain(f"{D2}/000000_0", 300)
    damaged.write_bytes(damaged.read_bytes()[:-9])
    files.insert(f"{D2}/000001_0", rows(1, 0, 2))
    assert files.check() == [
        ("UNREADABLE_FILE", f"{D2}/000000_0"),
        ("EVENTS_IN_A_PLAIN_FILE", f"{D2}/000001_0"),
        ("STRAY_FILE", "000000_0"),
    ]


def test_an_insert_only_table_in_parquet(tmp_path):
    files = Files(
        tmp_path / "t", file_format="parquet", transactional_properties="insert_only"
    )  # fmt: skip
    files.plain(f"{D1}/000000_0", 3)
    cut = files.plain(f"{D1}/000001_0", 3)
    pages = files.plain(f"{D1}/000002_0", 3)
    assert files.check() == files.check(all_rows=False) == []
    cut.write_bytes(cut.read_bytes()[:-5])
    data = bytearray(pages.read_bytes())
    data[4:24] = b"\xff" * 20  # a page's header, which the footer does not show
    pages.write_bytes(data)
    assert files.check(all_rows=False) == [("UNREADABLE_FILE", f"{D1}/000001_0")]
    assert files.check() == [
        ("UNREADABLE_FILE", f"{D1}/000001_0"), ("UNREADABLE_FILE", f"{D1}/000002_0")
    ]  # fmt: skip


def test_a_streamed_file_is_read_up_to_its_committed_length(files):
    path = files.insert("delta_0000001_0000003/bucket_00000", rows(1, 0, 3))
    length = path.stat().st_size
    with path.open("ab") as opened:
        opened.write(b"not committed yet")
    side = files.put(f"{path.parent.name}/{path.name}_flush_length", length.to_bytes(8, "big"))
    assert files.check() == []
    side.write_bytes((1 << 40).to_bytes(8, "big"))
    assert ("UNREADABLE_FILE", str(path.relative_to(files.root))) in files.check()
    side.write_bytes(b"\xff" * 8)
    assert ("UNREADABLE_DIRECTORY", str(side.relative_to(files.root))) in files.check()


# Hive's tables with what a check rightly finds in them.
OF_HIVE = {
    "aborted": {"ABORTED_DIRECTORY"},
    "aborted_major": {"ABORTED_DIRECTORY"},
    "types_ltz": {"UNREADABLE_FILE", "NOT_COMPARED"},  # a type that acidsql cannot read
}


@pytest.mark.parametrize("name", sorted(p.parent.name for p in GOLDEN.glob("*/case.json")))
def test_tables_of_hives_are_sound(name):
    case = json.loads((GOLDEN / name / "case.json").read_text())
    if name == "insert_only_text":
        pytest.skip("acidsql has no transactional tables of texts")
    location = str(GOLDEN / name / "data")
    columns, by = (
        tuple(Column(*one) for one in case[part]) for part in ("columns", "partition_columns")
    )
    table = Table(
        TableName("d", "t"), location, columns, by, tuple(case["bucket_columns"]),
        case["num_buckets"], case["table_properties"],
    )  # fmt: skip
    seen = ValidWriteIdList.parse(case["valid_write_ids"])
    txns = ValidTxnList.parse(case["valid_txns"])
    fs, partitions = filesystem_for(location), case["partition_names"]
    found = inventory(fs, location, partitions, seen, txns, columns=[one.name for one in by])
    known = CatalogFacts(partitions or [""], seen.high_water_mark, txns.high_water_mark)
    findings = job.TableCheck(fs, table, seen, txns, True).run(None, found, known)
    assert {one.condition for one in findings} == OF_HIVE.get(name, set()), findings


def test_findings_come_worst_first_and_travel_as_text():
    found = [Finding("p", name, "é 'x'") for name in CONDITIONS]
    ordered = sort_findings([*found, *found])
    assert len(ordered) == len(CONDITIONS)
    severities = [one.severity for one in ordered]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert [Finding.from_json(one.to_json()) for one in found] == found
    assert all(one.advice for one in found)


def test_a_task_with_too_many_findings_says_so(files, monkeypatch):
    monkeypatch.setattr(job, "_OF_TASK", 2)
    for bucket in range(5):
        files.put(f"{D1}/bucket_0000{bucket}", b"damaged")
    found = files.check()
    assert len(found) == 3 and found[-1] == ("TOO_MANY_FINDINGS", "")
