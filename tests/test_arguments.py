"""Arguments of wrong types: a TypeError that says what was expected, before anything is opened.

The parameters are found by introspection, so a new method is tried, too. Its annotations must be
in ``TAKEN``, and it must check them.
"""

from __future__ import annotations

import datetime
import decimal
import inspect
from pathlib import Path

import numpy
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - PySpark's own convention

import acidsql
from acidsql.api.dataframes import merge
from acidsql.arguments import checked
from acidsql.errors import AcidSqlError, ArgumentTypeError, SettingError
from acidsql.statements.context.unit_of_work import Transaction
from acidsql.streams.auto_cdc import AutoCdc
from acidsql.streams.sink import Sink
from acidsql.streams.writer import AcidStreamWriter


def bare(kind):
    """An object that has nothing, so that a call which touches anything of it fails."""
    return object.__new__(kind)


# One value of each kind. Those of Spark have no session.
VALUES = {
    "None": None,
    "text": "t",
    "bytes": b"t",
    "bool": True,
    "int": 1,
    "numpy.int": numpy.int64(1),
    "float": 1.5,
    "decimal": decimal.Decimal(1),
    "date": datetime.date(2024, 1, 1),
    "aware": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
    "path": Path("t"),
    "function": len,
    "object": object(),
    "class": int,
    "array": numpy.array(["t"]),
    "set": {"t"},
    "list of text": ["t"],
    "tuple of text": ("t",),
    "list of int": [1],
    "list of None": ["t", None],
    "list of pairs": [("t", "int")],
    "list of dicts": [{"t": 1}],
    "dict of text": {"t": "1"},
    "dict of int": {"t": 1},
    "dict by int": {1: "t"},
    "struct": T.StructType(),
    "DataFrame": bare(DataFrame),
    "SparkSession": bare(SparkSession),
    "Column": bare(Column),
    "AutoCdc": bare(AutoCdc),
    "list of AutoCdc": [bare(AutoCdc)],
    "dict of AutoCdc": {"t": bare(AutoCdc)},
    "CommitPoints": acidsql.CommitPoints("last"),
}
LISTS = {"list of text", "tuple of text"}
DICTS = {"dict of text", "dict of int"}
FRAMES = {"DataFrame", "list of dicts"}
SEQUENCES = {name for name in VALUES if name.startswith(("list", "tuple"))}

# The values that an annotation takes. None is taken if the annotation has it.
TAKEN = {
    "str": {"text"},
    "str | Path": {"text", "path"},
    "bool": {"bool"},
    "int": {"int", "numpy.int"},
    "int | str": {"int", "numpy.int", "text"},
    "int | date | str": {"int", "numpy.int", "text", "date", "aware"},
    "date | str": {"text", "date", "aware"},
    "Any": set(VALUES),
    "SparkSession": {"SparkSession"},
    "DataFrame": {"DataFrame"},
    "Rows": FRAMES,
    "Rows | T.StructType | str": {*FRAMES, "struct", "text"},
    "str | StructType": {"text", "struct"},
    "Schema": {"text", "struct", "list of pairs"},
    "SqlOrColumn": {"text", "Column"},
    "Mapping[str, Any]": {*DICTS, "dict of AutoCdc"},
    "Mapping[str, Any] | Sequence[Any]": {*DICTS, "dict of AutoCdc", *SEQUENCES},
    "Mapping[str, SqlOrColumn]": {"dict of text"},
    "Mapping[str, str]": {"dict of text"},
    "Mapping[str, str | bool | float]": DICTS,
    "Sequence[str]": LISTS,
    "Sequence[str] | str": {*LISTS, "text"},
    "str | Sequence[AutoCdc] | Mapping[str, AutoCdc]": {
        "text", "list of AutoCdc", "dict of AutoCdc",
    },
    "CommitPoints | str": {"CommitPoints", "text"},
    "Transform": {"function", "class", "AutoCdc"},  # it has a __call__, too
    "Callable[[str], None]": {"function", "class", "AutoCdc"},
}  # fmt: skip
# The classes whose methods users call, and which methods, if not all.
CLASSES = {
    acidsql.Session: None,
    Transaction: {"savepoint", "rollback"},
    merge.MergeIntoWriter: None,
    merge.WhenMatched: None,
    merge.WhenNotMatched: None,
    merge.WhenNotMatchedBySource: None,
    Sink: {"__call__"},
    AutoCdc: {"__call__", "apply"},
    AcidStreamWriter: None,
}


def public_calls():
    """Each public function and method of acidsql, with the object that it is called on."""
    for name in ("connect", "read"):
        yield name, getattr(acidsql, name), ()
    yield "CommitPoints", acidsql.CommitPoints, ()
    for kind, names in CLASSES.items():
        for name, member in inspect.getmembers(kind, inspect.isfunction):
            is_ours = member.__module__.startswith("acidsql")
            if is_ours and (not name.startswith("_") if names is None else name in names):
                yield f"{kind.__name__}.{name}", member, (bare(kind),)


def parameters():
    """Each parameter of a public call that does not take everything."""
    for name, call, owner in public_calls():
        signature = inspect.signature(call)
        for parameter in list(signature.parameters.values())[len(owner) :]:
            kind = parameter.annotation.removesuffix(" | None")
            if kind != "Any":
                yield pytest.param(call, owner, parameter, id=f"{name}-{parameter.name}")


def arguments(call, owner, parameter, value):
    """Right values for the parameters that need one, and this value for one parameter."""
    options = {}
    for other in list(inspect.signature(call).parameters.values())[len(owner) :]:
        if other.default is other.empty and other.kind not in (other.VAR_KEYWORD,):
            taken = TAKEN[other.annotation.removesuffix(" | None")]
            options[other.name] = VALUES[min(taken)]
    name = "some_frame" if parameter.kind is parameter.VAR_KEYWORD else parameter.name
    return options | {name: value}


@pytest.mark.parametrize(("call", "owner", "parameter"), list(parameters()))
def test_a_wrong_type_is_a_type_error_before_anything_is_touched(call, owner, parameter):
    """The object has no attributes, so whatever the method would do first fails otherwise."""
    taken = TAKEN[parameter.annotation.removesuffix(" | None")]
    may_be_none = parameter.annotation.endswith(" | None")
    name = "some_frame" if parameter.kind is parameter.VAR_KEYWORD else parameter.name
    for kind, value in VALUES.items():
        if kind in taken or (kind == "None" and may_be_none):
            continue
        with pytest.raises(ArgumentTypeError) as caught:
            call(*owner, **arguments(call, owner, parameter, value))
        assert isinstance(caught.value, TypeError)
        assert name in str(caught.value), (kind, caught.value)
        assert "should be" in str(caught.value)


def test_a_right_type_is_handed_on():
    """None of the values that an annotation takes is refused for its type."""

    class Taking:
        pass

    for name, call, owner in public_calls():
        if not owner or owner[0].__class__ is not acidsql.Session:
            continue
        for parameter in list(inspect.signature(call).parameters.values())[1:]:
            for kind in TAKEN[parameter.annotation.removesuffix(" | None")]:
                options = arguments(call, owner, parameter, VALUES[kind])
                with pytest.raises(AttributeError):  # of the bare session
                    call(*owner, **options)
                    raise AttributeError(name)  # a context manager that was not entered


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (list[str], object(), "value should be a list of str, and is object."),
        (list[str], "ab", "value should be a list of str, and is 'ab' (str)."),
        (list[str], ["a", 1], "value[1] should be str, and is 1 (int)."),
        (dict[str, int], {"a": "b"}, "value['a'] should be int, and is 'b' (str)."),
        (dict[str, int], {1: 2}, "a key of value should be str, and is 1 (int)."),
        (int | None, True, "value should be int or None, and is True (bool)."),
        (int, None, "value should be int, and is None."),
        (dict[str, str | Column], {"a": 5}, "value['a'] should be str or Column, and is 5 (int). "
         "For a value, pass F.lit(5)."),
    ],
)  # fmt: skip
def test_an_error_says_what_was_expected(hint, value, message):
    def call(value):
        raise AssertionError(value)

    call.__annotations__ = {"value": hint}
    with pytest.raises(ArgumentTypeError) as caught:
        checked(call)(value)
    assert message in str(caught.value)
    assert caught.value.getCondition() == "NOT_EXPECTED_TYPE"


def test_an_integer_is_a_float():
    def call(settings):
        return settings

    call.__annotations__ = {"settings": dict[str, str | bool | float]}
    settings = {"hive.lock.numretries": 5}
    assert checked(call)(settings) == settings


def test_a_scalar_of_numpys_is_the_python_value():
    def call(number: int, text: str, flag: bool, at: datetime.datetime):
        return number, text, flag, at

    call.__annotations__ = {
        "number": int, "text": str, "flag": bool, "at": datetime.datetime,
    }  # fmt: skip
    moment = numpy.datetime64("2024-01-02T03:04:05.123456789")
    found = checked(call)(numpy.int32(3), numpy.str_("t"), numpy.bool_(True), moment)
    assert [type(value) for value in found] == [int, str, bool, datetime.datetime]
    assert found[3] == datetime.datetime(2024, 1, 2, 3, 4, 5, 123456)


def test_the_first_argument_of_connect_is_explained():
    with pytest.raises(TypeError, match=r"spark should be SparkSession.*metastore=…"):
        acidsql.connect("thrift://hive:9083")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: acidsql.connect(None, "/warehouse"),
         r"connect\(\): too many positional arguments\. It takes \(spark=None, \*, warehouse=None"),
        (lambda: acidsql.connect(warehuose="/w"), r"'warehuose'\. Did you mean warehouse=…\?"),
        (lambda: bare(acidsql.Session).insert_into("t"),
         r"insert_into\(\): missing a required argument: 'rows'\. It takes \(table, rows, \*, "),
        (lambda: bare(acidsql.Session).delete("t", whre="x"), "Did you mean where=…"),
    ],
)  # fmt: skip
def test_a_wrong_number_or_name_of_arguments_is_told_with_the_right_ones(call, message):
    with pytest.raises(TypeError, match=message) as caught:
        call()
    assert caught.value.getCondition() == "WRONG_ARGUMENTS"


def test_every_method_of_a_closed_session_says_that_it_is_closed():
    session = bare(acidsql.Session)
    session._closed = True
    calls = [
        (name, call)
        for name, call, owner in public_calls()
        if owner and type(owner[0]) is acidsql.Session and name != "Session.close"
    ]
    assert len(calls) > 25
    for name, call in [*calls, ("with", acidsql.Session.__enter__)]:
        parameters = list(inspect.signature(call).parameters.values())[1:]
        options = {
            parameter.name: VALUES[min(TAKEN[parameter.annotation.removesuffix(" | None")])]
            for parameter in parameters
            if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        }
        with pytest.raises(SettingError, match="This session is closed") as caught:
            call(session, **options)
            raise AssertionError(name)
        assert caught.value.getCondition() == "INVALID_HANDLE.SESSION_CLOSED"
    session.close()
    assert session.txn_id is None and session.closed and not session.in_transaction


def test_an_argument_error_is_one_of_acidsqls():
    assert issubclass(ArgumentTypeError, AcidSqlError)
