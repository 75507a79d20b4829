"""The name that a batch of several tables has in the ledger."""

from __future__ import annotations

from acidsql.acid.table import TableName
from acidsql.metastore.streams import joint_sink, may_write_to


def numbers(table):
    """What tells a table from a later one of its name."""
    return f"{len(table.name)}/{table.name[-1]}"


def test_a_sink_names_its_tables_or_is_taken_for_one_of_any_table():
    few = [TableName("d", "b"), TableName("d", "a")]
    assert joint_sink(few, numbers) == "d.a, d.b"
    assert may_write_to("d.a, d.b", few[0])
    assert not may_write_to("d.a, d.b", TableName("d", "c"))
    assert not may_write_to("", few[0]) and not may_write_to("d.aa", few[1])
    many = [TableName("d", f"{'x' * 120}{i}") for i in range(5)]
    sink = joint_sink(many, numbers)
    assert sink != joint_sink(many[1:] + few, numbers)
    assert len(sink) < 513 and may_write_to(sink, few[0])
    renamed = [TableName("e", f"{'y' * 120}{i}") for i in range(5)]
    assert joint_sink(reversed(renamed), numbers) == sink
    assert joint_sink(renamed, lambda table: f"{numbers(table)} made again") != sink
