"""Rows as Markdown and as expanded rows; other forms are in the tests of those who show them."""

from __future__ import annotations

from acidsql.terminal.render import FirstRows, expanded_text, markdown_text

ROWS = FirstRows(
    None, ("name", "row_count"), (("a|b\n*c*", "1"), (None, "22")), True, (False, True)
)


def test_markdown_escapes_its_marks_and_aligns_numbers():
    assert markdown_text(ROWS).split("\n") == [
        "| name | row_count |", "| --- | ---: |", r"| a\|b<br>\*c\* | 1 |", "| NULL | 22 |", "",
        "*the first 2 rows; there are more*",
    ]  # fmt: skip


def test_a_plan_is_a_block_of_code_in_markdown():
    rows = FirstRows(None, ("plan",), (("== Plan ==\nScan",),), False, (False,))
    assert markdown_text(rows) == "```\n== Plan ==\nScan\n```"


def test_an_expanded_row_has_a_line_for_each_column():
    assert expanded_text(ROWS, str.upper).split("\n") == [
        "─[ row 1 ]" + "─" * 19, "NAME      | A|B", "          | *C*", "ROW_COUNT | 1",
        "─[ row 2 ]" + "─" * 19, "NAME      | NULL", "ROW_COUNT | 22",
        "(the first 2 rows; there are more)",
    ]  # fmt: skip
