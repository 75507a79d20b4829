"""Changes of a column's type that may lose something, with old values and what they become.

The new values are literals of ours. A test compares them with what a real Hive reads.
"""

from __future__ import annotations

from typing import Any

NAN, INFINITY = float("nan"), float("inf")

# Old type, new type, and pairs of an old value in SQL and of the new value.
CHANGES: list[tuple[str, str, list[tuple[str, Any]]]] = [
    ("TINYINT", "STRING", [("-128", "-128"), ("7", "7")]),
    ("TINYINT", "FLOAT", [("-128", -128.0)]),
    ("SMALLINT", "VARCHAR(3)", [("-32768", "-32"), ("7", "7")]),
    ("INT", "STRING", [("-2147483648", "-2147483648"), ("0", "0"), ("10", "10"), ("9", "9")]),
    ("INT", "CHAR(4)", [("-2147483648", "-214"), ("7", "7   ")]),
    ("INT", "FLOAT", [("16777217", 16777216.0), ("-1000", -1000.0)]),
    ("BIGINT", "STRING", [("9223372036854775807", "9223372036854775807")]),
    ("BIGINT", "DOUBLE", [("9007199254740993", 9007199254740992.0), ("-5", -5.0)]),
    ("BIGINT", "FLOAT", [("33554435", 33554436.0)]),
    ("FLOAT", "STRING", [
        ("CAST(0.1 AS FLOAT)", "0.10000000149011612"), ("CAST('NaN' AS FLOAT)", None),
        ("CAST('-0' AS FLOAT)", "-0.0"),
    ]),
    ("DOUBLE", "STRING", [
        ("0.1D", "0.1"), ("CAST('NaN' AS DOUBLE)", None), ("CAST('-0' AS DOUBLE)", "-0.0"),
        ("4.9E-324D", "4.9E-324"), ("1.7976931348623157E308D", "1.7976931348623157E308"),
        ("1.0E7D", "1.0E7"), ("9999999D", "9999999.0"), ("0.001D", "0.001"),
        ("9.5E-5D", "9.5E-5"), ("CAST('-Infinity' AS DOUBLE)", "-Infinity"),
    ]),
    ("DOUBLE", "VARCHAR(4)", [("1234.5D", "1234"), ("1.5D", "1.5")]),
    ("DECIMAL(10,3)", "STRING", [
        ("1.500", "1.5"), ("-0.001", "-0.001"), ("100", "100"), ("0", "0"),
    ]),
    ("DECIMAL(38,10)", "CHAR(5)", [("-100.1000000000", "-100."), ("0.0000000001", "0.000")]),
    ("DECIMAL(38,10)", "DOUBLE", [
        ("1234567890123456789012345678.0123456789", 1.2345678901234568e27), ("0.1", 0.1),
    ]),
    ("DECIMAL(10,3)", "FLOAT", [("0.1", 0.10000000149011612), ("-1.5", -1.5)]),
    ("BOOLEAN", "STRING", [("true", "TRUE"), ("false", "FALSE")]),
    ("DATE", "STRING", [
        ("DATE'2024-02-29'", "2024-02-29"), ("DATE'0001-01-01'", "0001-01-01"),
        ("DATE'1500-03-01'", "1500-03-01"), ("DATE'1582-10-15'", "1582-10-15"),
        ("DATE'9999-12-31'", "9999-12-31"), ("DATE'+10000-01-01'", "+10000-01-01"),
    ]),
    ("DATE", "VARCHAR(7)", [("DATE'2024-02-29'", "2024-02")]),
    ("TIMESTAMP", "STRING", [
        ("TIMESTAMP_NTZ'2024-02-29 01:02:03.450'", "2024-02-29 01:02:03.45"),
        ("TIMESTAMP_NTZ'1500-03-01 00:00:00'", "1500-03-01 00:00:00"),
        ("TIMESTAMP_NTZ'1969-12-31 23:59:58.999999'", "1969-12-31 23:59:58.999999"),
    ]),
    ("STRING", "VARCHAR(4)", [
        ("'é€😀xyz'", "é€😀x"), ("'ab    cd'", "ab  "), ("'ab'", "ab"), ("''", ""),
    ]),
    ("STRING", "CHAR(4)", [("'é€😀xyz'", "é€😀x"), ("'ab    cd'", "ab  "), ("'a'", "a   ")]),
    ("STRING", "DOUBLE", [
        ("' 1.5 '", 1.5), ("'abc'", None), ("''", None), ("'1d'", 1.0), ("'0x1p3'", 8.0),
        ("'NaN'", NAN), ("'-Infinity'", -INFINITY), ("'1_0'", None), ("'-0'", -0.0),
        ("'1e400'", INFINITY),
    ]),
    ("VARCHAR(8)", "CHAR(4)", [("'abcdef'", "abcd"), ("'ab '", "ab  ")]),
    ("VARCHAR(8)", "VARCHAR(4)", [("'abcdef'", "abcd"), ("'ab '", "ab ")]),
    ("CHAR(8)", "STRING", [("'ab'", "ab"), ("'é€😀'", "é€😀")]),
    ("CHAR(8)", "VARCHAR(4)", [("'abcdef'", "abcd"), ("'ab'", "ab")]),
    ("CHAR(8)", "DOUBLE", [("'1.5'", 1.5), ("'x'", None)]),
]  # fmt: skip
ROWS = max(len(pairs) for _, _, pairs in CHANGES) + 1  # the last one is all NULL


def columns(new: bool) -> list[tuple[str, str]]:
    """The names and types of the columns, before or after the changes."""
    types = [after if new else before for before, after, _ in CHANGES]
    return [("id", "INT"), *((f"c{n}", kind) for n, kind in enumerate(types))]


def _of(row: int, pairs: list[tuple[str, Any]]) -> tuple[str, Any]:
    return pairs[row % len(pairs)] if row < ROWS - 1 else ("NULL", None)


def old_rows() -> str:
    """The old rows, as a query."""
    kinds = [_in_queries(before) for before, _, _ in CHANGES]
    rows = []
    for row in range(ROWS):
        values = [_of(row, pairs)[0] for _, _, pairs in CHANGES]
        cast = [f"CAST({one} AS {kind})" for one, kind in zip(values, kinds, strict=True)]
        rows.append(f"SELECT {row}, {', '.join(cast)}")
    return " UNION ALL ".join(rows)


def _in_queries(kind: str) -> str:
    if "CHAR" in kind:
        return "STRING"
    return kind.replace("TIMESTAMP", "TIMESTAMP_NTZ")


def new_rows() -> list[tuple[Any, ...]]:
    """The rows after the changes."""
    return [(row, *(_of(row, pairs)[1] for _, _, pairs in CHANGES)) for row in range(ROWS)]


def alterations() -> str:
    """What follows ALTER TABLE t."""
    changes = (f"c{n} TYPE {after}" for n, (_, after, _) in enumerate(CHANGES))
    return f"ALTER COLUMN {', '.join(changes)}"
