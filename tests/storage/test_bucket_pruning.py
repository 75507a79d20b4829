"""Which files of a bucketed table are left out. Delete files stay with the rows that they
delete."""

from __future__ import annotations

from acidsql.acid.layout import parse_directory
from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.values.predicate import Comparison, TypedValue
from acidsql.storage.reading.pruning.bucket_pruning import prune_buckets
from acidsql.storage.tables.listing import EventFile, Listing, OriginalFiles

TABLE = Table(
    TableName("default", "t"), "/t", (Column("id", "int"),), bucket_columns=("id",), num_buckets=4
)
ONE = Comparison("id", "=", (TypedValue("int", "1"),))


def files(directory, *names):
    return tuple(EventFile(f"/t/{directory}/{n}", parse_directory(directory), 1) for n in names)


ALL = ("bucket_00000", "bucket_00001", "bucket_00002_0", "bucket_00003", "odd")
DATA, DELETES = files("delta_1_1_0000", *ALL), files("delete_delta_2_2_0000", *ALL)


def names(found):
    return [file.path.rpartition("/")[2] for file in found]


def test_the_files_of_one_bucket_are_left_and_those_whose_names_say_nothing():
    (found,) = prune_buckets([Listing("", DATA, DELETES)], TABLE, ONE)
    assert len(names(found.data)) == 2 and "odd" in names(found.data)
    assert names(found.deletes) == names(found.data)


def test_where_a_column_can_have_any_value_nothing_is_left_out():
    listing = Listing("", DATA, DELETES)
    assert prune_buckets([listing], TABLE, Comparison("id", ">", ONE.values)) == [listing]


def test_rows_without_event_columns_keep_all_delete_events():
    listing = Listing("", DATA, DELETES, (OriginalFiles(("/t/000000_0",)),))
    assert prune_buckets([listing], TABLE, ONE) == [listing]
