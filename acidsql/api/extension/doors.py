"""Puts doors in the places of PySpark's own methods, and takes them away again.

A door is a method or property of PySpark's class that first asks whether an open `Extension` is in
charge of the object's session. If there is none, it does what was there before, whoever put it
there. If there is one, but the caller is acidsql itself, or the call comes from within another
door, it does the same: acidsql's own statements must reach Spark.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from pyspark.sql import SparkSession

from acidsql.api.extension import calls
from acidsql.api.extension.extension import Extension
from acidsql.api.extension.registry import (
    changing,
    extension_of,
    is_any_in_charge,
    put_in_charge,
    take_charge_from,
)
from acidsql.storage.spark.session.jvm import is_remote
from acidsql.storage.spark.session.users_code import call_users_function

_SESSION_DOORS: dict[str, Callable[..., Any]] = {
    "sql": calls.run_sql,
    "table": calls.read_table,
    "read": calls.give_reader,
    "catalog": calls.give_catalog,
}
_FRAME_DOORS: dict[str, Callable[..., Any]] = {
    "write": calls.give_writer,
    "writeStream": calls.give_stream_writer,
    "writeTo": calls.give_writer_v2,
    "mergeInto": calls.merge_into,
}
_OWN_PACKAGE = "acidsql."

# The doors that stand: (class, name) → the door, and what the class itself had there before.
_doors: dict[tuple[type, str], tuple[Any, Any]] = {}
_thread = threading.local()
_MISSING = object()


def open_doors(extension: Extension) -> None:
    """Put an extension in charge of its session, before older ones. Doors that are missing are put
    up."""
    spark = extension.spark
    with changing:
        put_in_charge(extension, spark)
        for owner, name, act in _places(spark):
            _put_door(owner, name, act)


def close_doors(extension: Extension) -> None:
    """Take a session from an extension; a second call does nothing. Without any extension, each
    door is taken away, unless another library has put something before it: then the door stays, and
    does what was there before."""
    with changing:
        take_charge_from(extension, extension.spark)
        if not is_any_in_charge():
            for (owner, name), (door, before) in list(_doors.items()):
                _take_door(owner, name, door, before)


def _places(spark: SparkSession) -> Iterator[tuple[type, str, Callable[..., Any]]]:
    """Yield the class, the name and the act of each door for a session: also of subclasses that
    have a method of their own in the place of PySpark's."""
    for owner in type(spark).__mro__:
        for name, act in _SESSION_DOORS.items():
            if name in vars(owner):
                yield owner, name, act
    frame_class = _frame_class(spark)
    for name, act in _FRAME_DOORS.items():
        if name in vars(frame_class):
            yield frame_class, name, act


def _frame_class(spark: SparkSession) -> type:
    """Return the class of the DataFrames that PySpark makes in a session."""
    if is_remote(spark):
        from pyspark.sql.connect.dataframe import DataFrame as RemoteDataFrame

        return RemoteDataFrame
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    return ClassicDataFrame


def _put_door(owner: type, name: str, act: Callable[..., Any]) -> None:
    """Put a door in the place of a class's own attribute, unless one stands there."""
    before = vars(owner)[name]
    if (owner, name) in _doors and _doors[owner, name][0] is before:
        return
    door = _method_door(before, act) if callable(before) else _property_door(before, act)
    setattr(owner, name, door)
    _doors[owner, name] = (door, before)


def _take_door(owner: type, name: str, door: Any, before: Any) -> None:
    """Give a class back what it had, if the door is still what it has now."""
    if vars(owner).get(name, _MISSING) is door:
        setattr(owner, name, before)
        del _doors[owner, name]


def _method_door(before: Callable[..., Any], act: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def door(owner: Any, /, *args: Any, **options: Any) -> Any:
        extension = None if _is_within_door() else extension_of(owner)
        if extension is None:
            return before(owner, *args, **options)
        with _within_door():
            if _is_own_call(sys._getframe(1)):
                return before(owner, *args, **options)
            return act(extension, functools.partial(before, owner), owner, *args, **options)

    return door


def _property_door(before: Any, act: Callable[..., Any]) -> property:
    """Return a property for a property of PySpark's, or another descriptor that reads an object."""

    def door(owner: Any) -> Any:
        extension = None if _is_within_door() else extension_of(owner)
        value = before.__get__(owner, type(owner))
        if extension is None or _is_own_call(sys._getframe(1)):
            return value
        return act(extension, value, owner)

    return property(door, doc=before.__doc__)


def _is_own_call(caller: FrameType | None) -> bool:
    """Whether code of acidsql's has made a call, by the frames of Python's stack. It need not have
    made the call itself: another library may have put something before the door."""
    while caller is not None:
        if caller.f_code is call_users_function.__code__:
            return False
        if str(caller.f_globals.get("__name__", "")).startswith(_OWN_PACKAGE):
            return True
        caller = caller.f_back
    return False


def _is_within_door() -> bool:
    """Whether this thread is within a door."""
    return getattr(_thread, "depth", 0) > 0


@contextmanager
def _within_door() -> Iterator[None]:
    """Let doors that the block meets in this thread do what was there before."""
    _thread.depth = getattr(_thread, "depth", 0) + 1
    try:
        yield
    finally:
        _thread.depth -= 1
