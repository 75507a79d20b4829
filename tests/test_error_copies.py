"""Errors that go to another process, as those of a task or of a pool of workers."""

from __future__ import annotations

import copy
import pickle

import pytest

from acidsql.errors import (
    AcidSqlError,
    ArgumentTypeError,
    EvaluationError,
    MergeCardinalityError,
    SettingError,
)
from acidsql.sql.text.tokens import SqlText
from acidsql.storage.event_records import RowKey


def cardinality_error():
    error = MergeCardinalityError("Several rows match.", rows=3)
    error.examples = (RowKey("p=1", 1, 2, 3),)
    return error


@pytest.mark.parametrize("copied", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy])
@pytest.mark.parametrize(
    "error",
    [
        AcidSqlError("It failed."),
        EvaluationError(
            "Division by zero.", SqlText("SELECT a / 0"), 7, 12,
            condition="DIVIDE_BY_ZERO", sqlstate="22012",
        ),
        cardinality_error(),
        SettingError("Wrong.", name="a", condition="UNKNOWN_SETTING").at("SET a", 4, 5),
        ArgumentTypeError("Wrong.", condition="WRONG_ARGUMENTS"),
    ],
)  # fmt: skip
def test_a_copy_of_an_error_has_its_text_and_attributes(error, copied):
    copy_of_error = copied(error)
    assert type(copy_of_error) is type(error)
    assert str(copy_of_error) == str(error)
    assert vars(copy_of_error) == vars(error)
