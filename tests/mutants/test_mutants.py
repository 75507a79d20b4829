"""The lists of small faults fit the code: ``make mutants`` tries the faults themselves."""

from __future__ import annotations

from collections import Counter

from mutants import ROOT, all_mutants


def test_each_fault_can_be_made_in_one_place():
    assert [mutant.breaks for mutant in all_mutants() if not mutant.is_applicable] == []


def test_each_fault_changes_something_and_is_there_once():
    mutants = all_mutants()
    assert [mutant.breaks for mutant in mutants if mutant.old == mutant.new] == []
    places = Counter((mutant.file, mutant.old, mutant.new) for mutant in mutants)
    assert [place for place, number in places.items() if number > 1] == []


def test_each_fault_names_tests_that_exist():
    names = {name.split("::")[0] for mutant in all_mutants() for name in mutant.tests}
    assert [name for name in sorted(names) if not (ROOT / name).exists()] == []
    assert [mutant.breaks for mutant in all_mutants() if not mutant.tests] == []
