"""Answers: rows as JSON, and errors by kind, so that engines can be compared."""

from __future__ import annotations

import json
import math
import re
from typing import Any

# The kinds of errors, and the names of conditions (of Spark, Delta Lake, Iceberg and acidsql) that
# each of them stands for.
KINDS = {
    "CARDINALITY": "MULTIPLE_SOURCE_ROW|CARDINALITY",
    "PARTITION": "PARTITION",
    "CONSTRAINT": "CONSTRAINT_VIOLATION|NOT_NULL_|NULL_VIOLATION|VIOLATE_CONSTRAINT"
    "|REPLACE_WHERE_MISMATCH|EXCEED_LIMIT_LENGTH|EXCEED_CHAR|NULLABLE_COLUMN"
    "|CONSTRAINT_ALREADY_EXISTS|CONSTRAINT_WITH_NAME",
    # A column or a part of it is named or assigned twice, or cannot be assigned.
    "ASSIGNMENT": "(COLUMN|FIELD)_ALREADY_EXISTS|DUPLICATE_COLUMNS|DUPLICATE_ASSIGNMENTS"
    "|CONFLICT_SET|CONFLICTING_SET|ROW_LEVEL_OPERATION_ASSIGNMENTS|NESTED_FIELD|EXTRACT_BASE_FIELD",
    "UNRESOLVED": "UNRESOLVED|FIELD_NOT_FOUND|COLUMN_NOT_FOUND",
    "AMBIGUOUS": "AMBIGUOUS",
    "DUPLICATE": "DUPLICATE|ALREADY_EXISTS",
    # The values do not fit the columns in number or in name.
    "COLUMNS": "ARITY|VALUE_COUNT|NUM_COLUMNS|EXTRA_COLUMNS|CANNOT_FIND_DATA|NOT_ENOUGH_DATA"
    "|TOO_MANY_DATA|EXTRA_STRUCT_FIELDS|INSERT_COLUMN|MISSING_COLUMN|METADATA_MISMATCH"
    "|UPDATE_SCHEMA_MISMATCH|LEGACY_ERROR_TEMP_0006",
    "OVERFLOW": "OVERFLOW|OUT_OF_RANGE",
    "TYPE": "CANNOT_SAFELY_CAST|DATATYPE_MISMATCH|TYPE_MISMATCH|FAILED_TO_MERGE_FIELDS"
    "|NOT_BOOLEAN|INCOMPATIBLE_DATA|CAST_WITHOUT_SUGGESTION|UP_CAST",
    "VALUE": "CAST_INVALID_INPUT|DIVIDE_BY_ZERO|INVALID_CAST",
    "PARSE": "PARSE_SYNTAX|PARSE_EMPTY|NON_LAST|INVALID_STATEMENT|MERGE_WITHOUT_WHEN",
    "TABLE": "TABLE_OR_VIEW_NOT_FOUND|TABLE_NOT_FOUND|MISSING_DELTA_TABLE",
    "VERSION": "VERSION_NOT_FOUND|VERSIONS_NOT|TIMESTAMP|TIME_TRAVEL|HISTORY|TABLE_VERSION"
    "|CDC_RANGE|VERSION_AFTER_LATEST",
    "RANDOM": "NON_DETERMINISTIC",
    # A function of several rows, where there is one row.
    "AGGREGATE": "AGGREGAT|WINDOW|GROUP_BY|UNSUPPORTED_EXPR|INVALID_WHERE",
    "SUBQUERY": "SUBQUERY",
    "STAR": "USAGE_OF_STAR",
    "DEFAULT": "DEFAULT",
    "CALL": "INVALID_CONF_VALUE",
    "UNSUPPORTED": "UNSUPPORTED|NOT_SUPPORTED",
}


def kind_of(condition: str) -> str | None:
    """The kind of an error, by the name of its condition."""
    for kind, names in KINDS.items():
        if re.search(names, condition):
            return kind
    return None


def answer(frame: Any) -> dict[str, Any]:
    """The rows of a DataFrame, as a multiset, and its columns."""
    rows = [[plain(value) for value in row] for row in frame.collect()]
    return {"columns": list(frame.columns), "rows": sorted(rows, key=json.dumps)}


def plain(value: Any) -> Any:
    """A value as JSON can have it, such that values of different types differ."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if hasattr(value, "asDict"):
        return {name: plain(part) for name, part in zip(value.__fields__, value, strict=True)}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        pairs = [[plain(key), plain(part)] for key, part in value.items()]
        return {"map": sorted(pairs, key=json.dumps)}
    if isinstance(value, bytes | bytearray):
        return {"binary": value.hex()}
    return {type(value).__name__: str(value)}
