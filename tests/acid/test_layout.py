"""Names on disk: made, parsed, and distinguished from other names (hive-format.md §1 and §8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.acid import layout
from acidsql.acid.layout import AcidDirectory, DirectoryKind, parse_directory
from acidsql.errors import FormatError


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("base_0000005", (DirectoryKind.BASE, 5, 5, None, 0)),
        ("base_0000005_v0000017", (DirectoryKind.BASE, 5, 5, None, 17)),
        ("base_-9223372036854775808", (DirectoryKind.BASE, -(2**63), -(2**63), None, 0)),
        ("delta_0000006_0000006_0003", (DirectoryKind.DELTA, 6, 6, 3, 0)),
        ("delete_delta_0000006_0000006_0000", (DirectoryKind.DELETE_DELTA, 6, 6, 0, 0)),
        ("delta_0000001_0000005", (DirectoryKind.DELTA, 1, 5, None, 0)),
        ("delete_delta_0000001_0000005_v0000009", (DirectoryKind.DELETE_DELTA, 1, 5, None, 9)),
        ("delta_1_5", (DirectoryKind.DELTA, 1, 5, None, 0)),
        ("base_1234567890", (DirectoryKind.BASE, 1234567890, 1234567890, None, 0)),
    ],
)  # fmt: skip
def test_a_directorys_name_tells_what_is_in_it(name, expected):
    assert parse_directory(name) == AcidDirectory(name, *expected)


@pytest.mark.parametrize(
    "name",
    ["base_", "base_x", "delta_1", "delta_1_2_3_4", "delta_1_2_v", "xdelta_1_2", "base_5_v1_v2",
     "Base_5", "delta_0000001_0000001_0000.tmp", "HIVE_UNION_SUBDIR_1", "p=1", "delta_-1_2"],
)  # fmt: skip
def test_other_names_are_no_acid_directories(name):
    assert parse_directory(name) is None


@given(st.integers(1, 10**12), st.integers(0, 4095))
def test_the_names_that_are_written_are_read_back(write_id, statement):
    found = parse_directory(layout.delta_name(write_id, statement))
    assert (found.kind, found.min_write_id, found.max_write_id) == (
        DirectoryKind.DELTA,
        write_id,
        write_id,
    )
    assert found.statement_id == statement
    assert (
        parse_directory(layout.delete_delta_name(write_id, statement)).kind
        is DirectoryKind.DELETE_DELTA
    )
    assert parse_directory(layout.base_name(write_id)).min_write_id == write_id


def test_names_are_padded_as_hive_formats_them_again():
    assert layout.delta_name(2, 1) == "delta_0000002_0000002_0001"
    assert layout.delete_delta_name(12345678, 0) == "delete_delta_12345678_12345678_0000"
    assert (layout.base_name(7), layout.bucket_name(3)) == ("base_0000007", "bucket_00003")


@pytest.mark.parametrize("statement", [-1, 4096])
def test_a_statement_id_has_twelve_bits(statement):
    with pytest.raises(FormatError, match="at most 4096 writing statements"):
        layout.delta_name(1, statement)


@pytest.mark.parametrize(
    ("name", "bucket"),
    [("bucket_00003", 3), ("bucket_00003_0", 3), ("bucket_00003_flush_length", None),
     ("000000_0", None), ("_orc_acid_version", None), ("bucket_00003.tmp", None)],
)  # fmt: skip
def test_a_bucket_files_name_tells_its_bucket_id(name, bucket):
    assert layout.bucket_id_of(name) == bucket


@pytest.mark.parametrize(
    ("name", "original"),
    [("000000_0", True), ("000001_0_copy_12", True), ("000000", False), ("bucket_00000", False),
     ("part-00000", False), ("000000_0.gz", False)],
)  # fmt: skip
def test_an_originals_name_is_hives(name, original):
    assert layout.is_original(name) is original


def test_hidden_is_what_begins_with_an_underscore_or_a_dot():
    hidden = ["_orc_acid_version", ".hive-staging_1", "_tmp.delta_1_1"]
    assert all(map(layout.is_hidden, hidden))
    assert not layout.is_hidden("000000_0")


# ── partitions ───────────────────────────────────────────────────────────────────────────────

ESCAPED = "\x01\t\n\x1f\x7f\"#%'*/:=?\\{[]^"
PLAIN = " },;&+|<>!@$~é€😀."


def test_hive_escapes_these_characters_and_no_others():
    name = layout.partition_name(["p"], [ESCAPED])
    assert name == "p=" + "".join(f"%{ord(c):02X}" for c in ESCAPED)
    assert layout.partition_name(["p"], [PLAIN]) == f"p={PLAIN}"


def test_names_of_columns_are_in_lower_case_and_escaped_too():
    assert layout.partition_name(["P:1", "q"], ["A", "b"]) == "p%3A1=A/q=b"


def test_null_and_the_empty_string_share_the_default_partition():
    name = "p=__HIVE_DEFAULT_PARTITION__/q=__HIVE_DEFAULT_PARTITION__"
    assert layout.partition_name(["p", "q"], [None, ""]) == name
    assert layout.parse_partition_name(name) == [("p", None), ("q", None)]


values = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.lists(values.filter(lambda v: v != layout.DEFAULT_PARTITION), min_size=1, max_size=4))
def test_a_partitions_name_is_read_back_as_it_was(texts):
    columns = [f"c{number}" for number in range(len(texts))]
    name = layout.partition_name(columns, texts)
    assert layout.parse_partition_name(name) == list(zip(columns, texts, strict=True))
    assert name.count("/") == len(texts) - 1


def test_a_directory_that_is_no_partition_is_refused():
    with pytest.raises(FormatError, match="not the name of a partition"):
        layout.parse_partition_name("p=1/delta_1_1")
