"""SQL that looks a number up by another, in the same time however many there are.

Spark goes through the keys of a map one by one, for each row. So it gets a table, in which a key
can be at one place only. That is told by a multiple of the key, and by which one, is chosen for
each group of keys such that no two have the same place ("hash and displace").
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from acidsql.storage.columns import literal

_KEY_BITS = 40  # of the largest key; with those of a factor a BIGINT has room for them
_SHIFT = 20  # below are bits of a multiple that say little of the key
_FACTORS = [number * 2_654_435_761 % (1 << 22) | 1 for number in range(1, 1 << 12)]


@dataclass(frozen=True, slots=True)
class Lookup:
    """Places for some numbers.

    Attributes:
        keys: What is at each place; -1: nothing.
        factors: By which a key is multiplied, for each group of keys.
    """

    keys: Sequence[int]
    factors: Sequence[int]

    @classmethod
    def of(cls, keys: Collection[int]) -> Lookup | None:
        """A table of these keys, from 0; None if they are too large or too much alike."""
        if max(keys) >> _KEY_BITS:
            return None
        size = 1 << (2 * len(keys)).bit_length()
        groups = size >> 2
        members: list[list[int]] = [[] for _ in range(groups)]
        for key in keys:
            members[key * _FACTORS[0] >> _SHIFT & groups - 1].append(key)
        factors, places = [1] * groups, dict[int, int]()
        for group in sorted(range(groups), key=lambda number: -len(members[number])):
            for factor in _FACTORS:
                found = {key * factor >> _SHIFT & size - 1: key for key in members[group]}
                if len(found) == len(members[group]) and places.keys().isdisjoint(found):
                    factors[group] = factor
                    places |= found
                    break
            else:
                return None
        return cls([places.get(place, -1) for place in range(size)], factors)

    def number(self, numbers: Mapping[int, int], key: str, otherwise: str) -> str:
        """SQL of what belongs to a key (BIGINT).

        Args:
            numbers: The numbers of the keys.
            key: SQL of a key.
            otherwise: SQL of what there is for another one.
        """
        group = f"shiftright({key} * {_FACTORS[0]}, {_SHIFT}) & {len(self.factors) - 1}"
        place = f"shiftright({key} * {_get(self.factors, group)}, {_SHIFT}) & {len(self.keys) - 1}"
        found = _get([numbers.get(one, 0) for one in self.keys], place)
        return f"if({_get(self.keys, place)} = {key}, {found}, {otherwise})"


def _get(numbers: Sequence[int], index: str) -> str:
    # One literal, not thousands: Spark takes it apart once, while it plans.
    array = f"CAST(split({literal(','.join(map(str, numbers)))}, ',') AS ARRAY<BIGINT>)"
    return f"get({array}, CAST({index} AS INT))"
