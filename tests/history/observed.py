"""The facts that a history of list appends shows directly, and the anomalies that are seen at once.

The facts are: which transaction appended a value, which appends count, what each transaction read
of others, and in which order each list's appends took effect. The anomalies are: reads of what was
never committed or of half a transaction, lost appends, two rows of one key, and transactions that
disagree with themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from history import FAIL, INFO, Append, Key, Read, Transaction, Undo, Values


class Anomaly(NamedTuple):
    """Something that is not snapshot isolation: its name, and what happened."""

    kind: str
    text: str


@dataclass
class Facts:
    """The facts of a history about its values; made by ``observe``.

    Attributes:
        history: The transactions.
        author: The transaction that appended a value.
        final: Each transaction's appends that were not undone, by key.
        undone: The values whose append was undone.
        outside: What each transaction read, without its own appends.
        anomalies: The anomalies that are seen at once.
        order: The values of each key in the order of their appends.
    """

    history: Sequence[Transaction]
    author: dict[int, int] = field(default_factory=dict)
    final: list[dict[Key, list[int]]] = field(default_factory=list)
    undone: set[int] = field(default_factory=set)
    outside: list[tuple[int, Key, Values]] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)
    order: dict[Key, Values] = field(default_factory=dict)

    def name(self, index: int) -> str:
        return self.history[index].name

    def committed(self, index: int) -> bool:
        """Whether the transaction says that it is committed, or others have seen its appends."""
        txn = self.history[index]
        if txn.outcome != INFO:
            return txn.outcome != FAIL
        own = {value for values in self.final[index].values() for value in values}
        return any(own & set(values) for reader, _, values in self.outside if reader != index)


def observe(history: Sequence[Transaction]) -> Facts:
    """The facts of a history."""
    facts = Facts(history)
    for index, txn in enumerate(history):
        facts.final.append({})
        _walk(facts, index, txn)
    facts.anomalies += _bad_reads(facts)
    _find_order(facts)
    facts.anomalies += _lost(facts)
    return facts


# ── one transaction by itself ────────────────────────────────────────────────────────────────


def _walk(facts: Facts, index: int, txn: Transaction) -> None:
    """Note a transaction's appends and reads, and check that it agrees with itself."""
    counting: list[Append | Read] = []
    seen: dict[Key, Values] = {}
    for operation in txn.operations:
        if isinstance(operation, Undo):
            gone = counting[operation.kept :]
            facts.undone |= {one.value for one in gone if isinstance(one, Append)}
            del counting[operation.kept :]
            continue
        counting.append(operation)
        if isinstance(operation, Append):
            facts.author[operation.value] = index
            continue
        if len(operation.lists) > 1:
            facts.anomalies.append(_twins(facts, index, operation))
            continue
        own = tuple(
            one.value for one in counting if isinstance(one, Append) and one.key == operation.key
        )
        rest = operation.values[: len(operation.values) - len(own)]
        before = seen.setdefault(operation.key, rest)
        if operation.values != rest + own or before != rest:
            facts.anomalies.append(_disagrees(txn, operation, before, own))
        if operation.values != rest + own:
            continue
        facts.outside.append((index, operation.key, rest))
    for one in counting:
        if isinstance(one, Append):
            facts.final[index].setdefault(one.key, []).append(one.value)


def _twins(facts: Facts, index: int, read: Read) -> Anomaly:
    rows = " and ".join(map(shown, read.lists))
    text = f"{facts.name(index)} found {len(read.lists)} rows {place(read.key)}: {rows}"
    return Anomaly("lost update", f"{text}; one row was replaced by two transactions")


def _disagrees(txn: Transaction, read: Read, before: Values, own: Values) -> Anomaly:
    text = f"{txn.name} read {place(read.key)} as {shown(read.values)}"
    if own:
        text += f" after it had appended {shown(own)}"
    if read.values != before + own:
        text += f", and others' part as {shown(before)} before"
    return Anomaly("internal", text)


# ── reads of what was never committed ────────────────────────────────────────────────────────


def _bad_reads(facts: Facts) -> Iterator[Anomaly]:
    for reader, key, values in facts.outside:
        read = f"{facts.name(reader)} read {place(key)} as {shown(values)}"
        if len(set(values)) < len(values):
            yield Anomaly("duplicate", f"{read}: an append took effect twice")
        for value in values:
            writer = facts.author.get(value)
            if writer is None:
                yield Anomaly("garbage", f"{read}: nobody appended {value}")
            elif value in facts.undone:
                yield Anomaly("G1a", f"{read}: {facts.name(writer)} undid its {value}")
            elif facts.history[writer].outcome == FAIL:
                text = f"{facts.name(writer)}, which appended {value}, was aborted"
                yield Anomaly("G1a", f"{read}: {text}")
        last = facts.author.get(values[-1]) if values else None
        own = [] if last is None else facts.final[last].get(key, [])
        if values and values[-1] in own[:-1]:
            later = shown(own[own.index(values[-1]) + 1 :])
            text = f"{facts.name(last)} appended {later} in the same transaction"
            yield Anomaly("G1b", f"{read}: {text}")


# ── the order of appends ─────────────────────────────────────────────────────────────────────


def _find_order(facts: Facts) -> None:
    """The longest read of each list. All other reads must be beginnings of it."""
    reads: dict[Key, list[tuple[Values, int]]] = defaultdict(list)
    for reader, key, values in facts.outside:
        reads[key].append((values, reader))
    for key, found in reads.items():
        longest, by = max(found, key=lambda read: len(read[0]))
        for values, reader in found:
            if values != longest[: len(values)]:
                text = (
                    f"{facts.name(reader)} read {place(key)} as {shown(values)}, and "
                    f"{facts.name(by)} as {shown(longest)}: neither is the beginning of the other"
                )
                facts.anomalies.append(Anomaly("incompatible order", text))
                break
        else:
            facts.order[key] = longest


def _lost(facts: Facts) -> Iterator[Anomaly]:
    """Committed appends that a transaction which began later does not find."""
    for index, txn in enumerate(facts.history):
        for key, values in facts.final[index].items() if facts.committed(index) else ():
            missing = set(values) - set(facts.order.get(key, values))
            for reader, of, read in facts.outside if missing and txn.ended is not None else ():
                if of == key and facts.history[reader].began > txn.ended:
                    yield Anomaly(
                        "lost update",
                        f"{txn.name} has committed {shown(sorted(missing))} to {place(key)}, and "
                        f"{facts.name(reader)}, which began later, read {shown(read)}",
                    )
                    break


# ── words ────────────────────────────────────────────────────────────────────────────────────


def place(key: Key) -> str:
    """The name of a list."""
    return f"[{key[0]}/{key[1]}]"


def shown(values: Iterable[int]) -> str:
    """The end of a list, as text."""
    found = list(values)
    if len(found) > 12:
        return f"(… {' '.join(map(str, found[-12:]))})"
    return f"({' '.join(map(str, found))})"
