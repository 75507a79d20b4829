"""The name that a batch of several tables has in the ledger."""

from __future__ import annotations

from acidsql.acid.table import TableName
from acidsql.metastore.streams import may_write_to, sink_of


def test_a_sink_names_its_tables_or_is_taken_for_one_of_any_table():
    few = [TableName("d", "b"), TableName("d", "a")]
    assert sink_of(few) == "d.a, d.b"
    assert may_write_to("d.a, d.b", few[0])
    assert not may_write_to("d.a, d.b", TableName("d", "c"))
    assert not may_write_to("", few[0]) and not may_write_to("d.aa", few[1])
    many = [TableName("d", f"{'x' * 120}{i}") for i in range(5)]
    assert sink_of(many) != sink_of(many[1:] + few)
    assert len(sink_of(many)) < 513 and may_write_to(sink_of(many), few[0])
