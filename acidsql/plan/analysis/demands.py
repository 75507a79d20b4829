"""Reads the demands of a query on each stand-in from Spark's optimised plan.

A stand-in is the view in the place of a table. A demand is which of its rows and columns the query
needs.

Spark pushes conditions down to the relations, through views, subqueries and joins. The query needs
a row only if the row satisfies the Filter directly above its relation. This module reads the plan
as Spark's JSON. From an expression that this module does not know, no demand follows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from acidsql.acid.values.predicate import (
    ANYTHING,
    Comparison,
    Demand,
    Not,
    Predicate,
    TypedValue,
    conjunction,
    disjunction,
    merge_demands,
)

_COMPARISONS = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Not in here, because their comparison has special rules: doubles (NaN), timestamps (time zones)
# and strings with a collation.
_TYPES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "date": "date",
    "string": "string",
    "boolean": "boolean",
}

_Node = Mapping[str, Any]


class _Tree:
    """A node of Spark's JSON with its children. The JSON lists each node of a tree directly before
    its children, so a tree takes its nodes from an iterator. ``name``: the class without its
    package."""

    def __init__(self, nodes: Iterator[_Node]) -> None:
        self.node = next(nodes)
        self.name = self.node["class"].rpartition(".")[2]
        self.children = [_Tree(nodes) for _ in range(self.node["num-children"])]


def demands_of_plan(plan: str, views: Collection[str]) -> dict[str, Demand]:
    """Return which rows and columns of the views an optimised plan needs. What is not certain
    counts as needed.

    Args:
        plan: Spark's JSON of an optimised plan. Each view is a relation in the plan, and has a
            column with the view's name as a marker.
        views: The names of the views.

    Returns:
        The demand by view: a predicate that holds for all rows that are needed, and the columns in
        lower case (None: all, because the plan's root is no Project). A view that the plan does not
        read is missing.
    """
    nodes = json.loads(plan)
    # No query uses the marker column. So above each relation some node drops the marker and names
    # the columns that it passes on. This is sure only if the root of the plan is a Project.
    is_named = nodes[0]["class"].endswith(".Project")
    mentioned = set(_mentioned_ids(nodes)) if is_named else None
    demands_by_view: dict[str, list[Demand]] = {}
    for relation, condition in _relations(nodes):
        ids = {column[0]["name"]: column[0]["exprId"]["id"] for column in relation.node["output"]}
        predicate = _implied_predicate(condition) if condition else ANYTHING
        columns = None if mentioned is None else _needed_columns(ids, mentioned)
        for view in ids.keys() & set(views):
            demands_by_view.setdefault(view, []).append(Demand(predicate, columns))
    # A view that the plan reads twice must show the rows that either reading needs.
    return {view: merge_demands(view_demands) for view, view_demands in demands_by_view.items()}


def _needed_columns(ids: Mapping[str, int], mentioned: Collection[int]) -> frozenset[str]:
    """Return the lower-cased names of a relation's columns that the plan mentions. ``ids``: the
    columns' ids by name; ``mentioned``: the ids that the plan mentions."""
    return frozenset(name.lower() for name, number in ids.items() if number in mentioned)


def _mentioned_ids(value: Any) -> Iterator[int]:
    """Yield the ids of all attributes in the plan, except in the relations' lists of their
    columns."""
    if isinstance(value, list):
        for item in value:
            yield from _mentioned_ids(item)
    elif isinstance(value, dict) and not value.get("class", "").endswith(".LogicalRelation"):
        if "exprId" in value:
            yield value["exprId"]["id"]
        for item in value.values():
            yield from _mentioned_ids(item)


def _relations(value: Any) -> Iterator[tuple[_Tree, _Tree | None]]:
    """Yield all relations in a JSON value, each with the condition of the Filter directly above it,
    or None. The value is a plan, which is a list of nodes, or a list with plans in it, or in lists
    in it; any other value has none."""
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "num-children" in value[0]:
            yield from _relations_below(_Tree(iter(value)), None)
        else:
            for item in value:
                yield from _relations(item)


def _relations_below(tree: _Tree, condition: _Tree | None) -> Iterator[tuple[_Tree, _Tree | None]]:
    """Yield the relations in a tree and in the subqueries of its expressions, each with the
    condition of the Filter directly above it, or None. ``condition``: that of the node above
    ``tree``, if this node is a Filter; else None."""
    if tree.name == "LogicalRelation":
        yield tree, condition
        return
    for value in tree.node.values():  # subqueries are in expressions
        yield from _relations(value)
    filter_condition = _Tree(iter(tree.node["condition"])) if tree.name == "Filter" else None
    for child in tree.children:
        yield from _relations_below(child, filter_condition)


def _implied_predicate(tree: _Tree) -> Predicate:
    """Return a predicate that holds for every row for which a condition is true; ANYTHING if the
    condition tells nothing."""
    if tree.name == "And":
        return conjunction([_implied_predicate(child) for child in tree.children])
    if tree.name == "Or":
        return disjunction([_implied_predicate(child) for child in tree.children])
    if tree.name == "Not":
        term = _comparison(tree.children[0])
        return ANYTHING if term is None else Not(term)
    if tree.name == "IsNotNull":
        column = _column(tree.children[0])
        return ANYTHING if column is None else Not(Comparison(column, "is null"))
    return _comparison(tree) or ANYTHING


def _comparison(tree: _Tree) -> Comparison | None:
    """Return the comparison of a column with literals, or with IS NULL, that a condition is; a
    BOOLEAN column alone is ``= true``, and ``5 < a`` is ``a > 5``. None for any other condition, as
    with a literal that is NULL, DOUBLE or TIMESTAMP."""
    if tree.name == "AttributeReference":  # WHERE flag
        return Comparison(_name(tree), "=", (TypedValue("boolean", "true"),))
    if tree.name == "IsNull":
        column = _column(tree.children[0])
        return None if column is None else Comparison(column, "is null")
    if tree.name not in (*_COMPARISONS, "In"):
        return None
    first, *operands = tree.children
    operator = _COMPARISONS.get(tree.name, "in")
    if first.name == "Literal" and operator != "in":
        first, operands, operator = operands[0], [first], _MIRRORED[operator]
    column, values = _column(first), [_literal_value(operand) for operand in operands]
    known_values = tuple(value for value in values if value is not None)
    if column is None or len(known_values) < len(values):
        return None
    return Comparison(column, operator, known_values)


def _column(tree: _Tree) -> str | None:
    """Return the lower-cased name of the column that the tree is; None for any other tree."""
    return _name(tree) if tree.name == "AttributeReference" else None


def _name(column: _Tree) -> str:
    return str(column.node["name"]).lower()


def _literal_value(tree: _Tree) -> TypedValue | None:
    """Return a literal's value with its Hive type; None if the tree is no literal, or NULL, or of a
    type whose comparisons have special rules (double, timestamp, a string with a collation)."""
    if tree.name != "Literal" or tree.node["value"] is None:
        return None
    kind = tree.node["dataType"]
    if not isinstance(kind, str):
        return None
    hive = kind if kind.startswith("decimal(") else _TYPES.get(kind)
    return None if hive is None else TypedValue(hive, str(tree.node["value"]))
