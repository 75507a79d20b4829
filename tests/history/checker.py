"""Whether a history of list appends is snapshot isolation. If not: what happened, in words.

The reads show in which order the appends of each list took effect. This order shows which
transaction must have committed before which other one began. A transaction has two moments: its
snapshot (S) and its commit (C). Each fact orders two moments:

* *ww*: B appended directly after A: C(A) before S(B), because the first committer wins;
* *wr*: B read what A appended: C(A) before S(B);
* *rw*: A read a list without what B appended to it: S(A) before C(B);
* *rt*: A had ended before B began (also in the same session): C(A) before S(B).

The history is snapshot isolation exactly if no moment is before itself (Cerone and Gotsman, "A
Framework for Transactional Consistency Models with Atomic Visibility"). Write skew is allowed: its
circle has two rw facts one after the other, and no way leads from C back to S.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from history import Key, Transaction
from observed import Anomaly, Facts, observe, place

_MOST = 10  # the number of circles that are reported

S, C = 0, 1
Moment = tuple[int, int]  # a transaction's index, S or C; (-1, n): a moment of the clock
# Each stage adds facts. The circles of the first stage that has any are reported.
_STAGES = ("ww", "wr", "rw", "rt")


class Fact(NamedTuple):
    """One moment was before another, and why."""

    before: Moment
    after: Moment
    # One of _STAGES; "" for the order of a transaction's own S and C, and of the clock's moments.
    kind: str
    key: Key | None = None
    text: str = ""


def check(history: Sequence[Transaction]) -> list[Anomaly]:
    """Everything in a history that is not snapshot isolation."""
    facts = observe(history)
    return list(dict.fromkeys([*facts.anomalies, *_circles(facts)]))


def _dependencies(facts: Facts) -> Iterator[Fact]:
    name, unseen = facts.name, defaultdict[Key, list[int]](list)
    for index, final in enumerate(facts.final):
        yield Fact((index, S), (index, C), "")
        for key, values in final.items() if facts.committed(index) else ():
            unseen[key] += [v for v in values if v not in facts.order.get(key, values)]
    for key, order in facts.order.items():
        for one, two in pairwise(one for one in order if one in facts.author):
            a, b = facts.author[one], facts.author[two]
            text = f"{name(b)} appended {two} to {place(key)} after {name(a)}'s {one}"
            yield Fact((a, C), (b, S), "ww", key, text)
    for reader, key, values in facts.outside:
        read = f"{name(reader)} read {place(key)}"
        if values and values[-1] in facts.author:
            writer = facts.author[values[-1]]
            text = f"{read} with {name(writer)}'s {values[-1]}"
            yield Fact((writer, C), (reader, S), "wr", key, text)
        following = facts.order.get(key, ())[len(values) :][:1]
        for value in (*following, *unseen[key]) if key in facts.order else ():
            if value in facts.author:
                writer = facts.author[value]
                text = f"{read} without {name(writer)}'s {value}"
                yield Fact((reader, S), (writer, C), "rw", key, text)


def _clock(history: Sequence[Transaction]) -> Iterator[Fact]:
    """Facts of kind rt by moments of the clock: so there are few facts for many transactions."""
    moments = [(txn.began, 1, index) for index, txn in enumerate(history)]
    moments += [(t.ended, 0, index) for index, t in enumerate(history) if t.ended is not None]
    for number, (_, begins, index) in enumerate(sorted(moments)):
        yield Fact((-1, number), (-1, number + 1), "")
        if begins:
            yield Fact((-1, number), (index, S), "rt")
        else:
            yield Fact((index, C), (-1, number), "rt")


def _circles(facts: Facts) -> list[Anomaly]:
    every = [one for one in _dependencies(facts) if one.kind == "" or one.before[0] != one.after[0]]
    every += _clock(facts.history)
    for stage in range(1, len(_STAGES) + 1):
        known = [one for one in every if one.kind in ("", *_STAGES[:stage])]
        found = [_told(facts, circle) for circle in _shortest(known)]
        if found:
            return found
    return []


def _shortest(facts: Iterable[Fact]) -> list[list[Fact]]:
    """For each moment that is in a circle, a shortest one; circles of the same moments only
    once."""
    after: dict[Moment, list[Fact]] = defaultdict(list)
    before: dict[Moment, list[Fact]] = defaultdict(list)
    for one in facts:
        after[one.before].append(one)
        before[one.after].append(one)
    # A moment with nothing before it or nothing after it is in no circle: remove such moments until
    # none is left.
    left, ends = {*after, *before}, deque({*after, *before})
    while ends:
        moment = ends.popleft()
        out = [one.after for one in after[moment] if one.after in left]
        into = [one.before for one in before[moment] if one.before in left]
        if moment in left and (not out or not into):
            left.discard(moment)
            ends.extend(out + into)
    circles: dict[frozenset[Moment], list[Fact]] = {}
    for moment in sorted(left):
        if moment[0] >= 0 and len(circles) < _MOST and (circle := _way(moment, after, left)):
            circles.setdefault(frozenset(one.before for one in circle), circle)
    return list(circles.values())


def _way(start: Moment, after: dict[Moment, list[Fact]], left: set[Moment]) -> list[Fact]:
    """The shortest way from a moment to itself."""
    reached: dict[Moment, Fact] = {}
    ends = deque([start])
    while ends and start not in reached:
        for fact in after[ends.popleft()]:
            if fact.after in left and fact.after not in reached:
                reached[fact.after] = fact
                ends.append(fact.after)
    way: list[Fact] = []
    while start in reached and (not way or way[-1].before != start):
        way.append(reached[way[-1].before if way else start])
    return way[::-1]


def _told(facts: Facts, circle: list[Fact]) -> Anomaly:
    """The name of a circle, and its facts in words."""
    hops = [*_hops(facts, circle)]
    kinds = [one.kind for one in hops]
    if "rt" in kinds:
        same = {
            facts.history[one.before[0]].process == facts.history[one.after[0]].process != ""
            for one in hops
            if one.kind == "rt"
        }
        kind = "session went back" if same == {True} else "stale read"
    elif "rw" not in kinds:
        kind = "G1c" if "wr" in kinds else "G0"
    elif kinds.count("rw") > 1:
        kind = "long fork"
    else:
        one_list = len({one.key for one in hops}) == 1
        kind = "lost update" if one_list and "wr" not in kinds else "G-single"
    return Anomaly(kind, "; ".join(one.text for one in hops))


def _hops(facts: Facts, circle: list[Fact]) -> Iterator[Fact]:
    """The facts between transactions, without the moments of the clock between them."""
    first = next(number for number, one in enumerate(circle) if one.before[0] >= 0)
    ended = -1
    for one in circle[first:] + circle[:first]:
        if one.kind in ("ww", "wr", "rw"):
            yield one
        elif one.before[0] >= 0 and one.after[0] < 0:
            ended = one.before[0]
        elif one.before[0] < 0 and one.after[0] >= 0:
            text = f"{facts.name(ended)} had ended before {facts.name(one.after[0])} began"
            yield Fact((ended, C), one.after, "rt", None, text)
