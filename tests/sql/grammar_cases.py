"""Reads ``grammar/``: its cases, and its EBNF as Hypothesis strategies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from acidsql.sql.text.tokens import Span

GRAMMAR = Path(__file__).resolve().parents[2] / "grammar"


@dataclass(frozen=True)
class Case:
    """A statement, and the facts in its header line."""

    file: str
    header: str
    text: str

    @property
    def label(self) -> str:
        """The case's name in a test report."""
        return f"{self.file}: {' '.join(self.text.split())[:60]}"


def cases(kind: str) -> list[Case]:
    """All cases of ``grammar/accept`` or ``grammar/reject``."""
    found = []
    for path in sorted((GRAMMAR / kind).glob("*.sql")):
        for piece in re.split(r"^-- case ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            header, _, text = piece.partition("\n")
            found.append(Case(path.stem, header, text.removesuffix("\n")))
    return found


def productions() -> dict[str, str]:
    """Each production of ``grammar/dml.ebnf`` with its right side."""
    text = re.sub(r"\(\*.*?\*\)", "", (GRAMMAR / "dml.ebnf").read_text("utf-8"), flags=re.DOTALL)
    return dict(re.findall(r"^(\w+) = (.*?) ;[ \t]*$", text, flags=re.MULTILINE | re.DOTALL))


# The texts of the productions that are described in words ("? … ?").
_SAMPLES = {
    "name": ["t", "a", "`b c`", "select_", "value", "matched", "`é`", "p"],
    "frame": ["{df}"],
    "orc_serde": ["'org.apache.hadoop.hive.ql.io.orc.OrcSerde'"],
    "orc_input": ["'org.apache.hadoop.hive.ql.io.orc.OrcInputFormat'"],
    "orc_output": ["'org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat'"],
    "string": ["'x'", "'it''s'", '"y"', "r'\\d'"],
    "number": ["1", "42"],
    "merging": ["'minor'", "'MAJOR'"],
    "rebalancing": ["'Rebalance'"],
    "state": ["'initiated'", "'Ready for Cleaning'", "'did_not_initiate'"],
    "compaction_column": ["compactionid", "HIGHESTWRITEID", "`duration`", "'TabName'"],
    "setting": ["hive.txn.timeout", "`hive.txn.timeout`"],
    "rest": ["60s", "'60s'", "`a``b`", "/x?y=(z", "-1"],
    "type": ["INT", "DECIMAL(10, 2)", "MAP<STRING, ARRAY<INT>>", "STRUCT<a: INT, b: STRING>"],
    "expression": [
        "1",
        "a + 1",
        "x.b IN (SELECT id FROM s)",
        "CASE WHEN a THEN 'WHERE' ELSE (2) END",
        "a IS DISTINCT FROM b",
        "f(x, y -> y + 1)",
        ":p",
        "?",
        "arr[0].c",
        "'a' 'b'",
        "NOT a",
    ],
    "query": ["SELECT a, b FROM s", "SELECT * FROM (SELECT 1) WHERE a ORDER BY b LIMIT 1"],
    "select": ["SELECT a, b", "SELECT * WHERE a > 1"],
    "relation": ["s", "s JOIN u ON s.a = u.a", "(SELECT 1) x"],
}
_TOKEN = re.compile(r"'[^']+'|\w+|[\[\]{}()|]")


def sentences(start: str) -> st.SearchStrategy[str]:
    """Sentences that the EBNF derives from the production ``start``."""
    rules = productions()
    made: dict[str, st.SearchStrategy[str]] = {}

    def rule(name: str) -> st.SearchStrategy[str]:
        if name in _SAMPLES:
            return st.sampled_from(_SAMPLES[name])
        if name not in made:
            made[name] = choice(_TOKEN.findall(rules[name]))
        return made[name]

    def choice(tokens: list[str]) -> st.SearchStrategy[str]:
        branches = [sequence(tokens, ("|",))]
        while tokens and tokens[0] == "|":
            tokens.pop(0)
            branches.append(sequence(tokens, ("|",)))
        return st.one_of(branches)

    def sequence(tokens: list[str], ends: tuple[str, ...]) -> st.SearchStrategy[str]:
        parts = []
        while tokens and tokens[0] not in (*ends, "]", "}", ")"):
            parts.append(part(tokens))
        return st.tuples(*parts).map(lambda found: " ".join(word for word in found if word))

    def part(tokens: list[str]) -> st.SearchStrategy[str]:
        token = tokens.pop(0)
        if token in "[{(":
            inner = choice(tokens)
            tokens.pop(0)
            if token == "[":
                return st.one_of(st.just(""), inner)
            return inner if token == "(" else st.lists(inner, max_size=2).map(" ".join)
        if token.startswith("'"):
            return st.just(token[1:-1])
        return st.just(token) if token.isupper() else st.deferred(lambda: rule(token))

    return rule(start)


def spans(value: Any) -> Iterator[Span]:
    """Every Span in a statement."""
    if isinstance(value, Span):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from spans(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from spans(getattr(value, field.name))
