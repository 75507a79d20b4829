"""SQL that maps numbers to numbers in constant time.

For a map, Spark compares a row's key with all keys of the map, one by one. So the SQL uses a hash
table instead ("hash and displace"). Keys are divided into groups, and each group has a factor. A
key's place in the table is computed from the key times the factor of its group. The factors are
chosen so that no two keys have the same place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from acidsql.storage.columns import literal

_KEY_BITS = 40  # the bits of the largest key: a key times a factor must fit into a BIGINT
_SHIFT = 20  # the lower bits of a product depend on few bits of the key
_FACTORS = [number * 2_654_435_761 % (1 << 22) | 1 for number in range(1, 1 << 12)]


@dataclass(frozen=True, slots=True)
class Lookup:
    """A hash table of numbers.

    Attributes:
        keys: The key at each place; -1 for an empty place.
        factors: The factor of each group of keys.
    """

    keys: Sequence[int]
    factors: Sequence[int]

    @classmethod
    def of(cls, keys: Collection[int]) -> Lookup | None:
        """A table of these keys (from 0 on); None if a key is too large, or no factor fits."""
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
        """SQL of the number (BIGINT) that belongs to a key.

        Args:
            numbers: The number of each key.
            key: SQL of the key.
            otherwise: SQL of the result for an unknown key.
        """
        group = f"shiftright({key} * {_FACTORS[0]}, {_SHIFT}) & {len(self.factors) - 1}"
        place = f"shiftright({key} * {_get(self.factors, group)}, {_SHIFT}) & {len(self.keys) - 1}"
        found = _get([numbers.get(one, 0) for one in self.keys], place)
        return f"if({_get(self.keys, place)} = {key}, {found}, {otherwise})"


def _get(numbers: Sequence[int], index: str) -> str:
    # The array is one literal, not thousands: Spark splits it once, while it plans.
    array = f"CAST(split({literal(','.join(map(str, numbers)))}, ',') AS ARRAY<BIGINT>)"
    return f"get({array}, CAST({index} AS INT))"
