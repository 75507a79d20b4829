"""Checks the types of the arguments of public methods, by the annotations of their parameters.

Python itself checks nothing: a text in the place of a list is a list of letters, and True is the
number 1. Without a check such an argument changes the wrong rows, or it fails deep inside.

The rules: True is no number; an integer is a float, as for type checkers; a text is no list of
texts; None is allowed only where the annotation says so; a scalar of numpy's that is an argument by
itself counts as the Python value that it has, and is handed on as this.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, overload

from acidsql.errors import ArgumentTypeError, SettingError
from acidsql.suggestions import similar_names

P = ParamSpec("P")
R = TypeVar("R")
_SHOWN_MAX = 60  # characters of a value that an error shows
_SCALARS = (str, bytes, bool, int, float, Decimal, date, timedelta)


@overload
def checked(function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def checked(**advice: str) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def checked(function: Any = None, /, **advice: str) -> Any:
    """Make a function raise ArgumentTypeError if an argument has another type than is annotated, or
    a name that no parameter has, or is missing. Defaults are not checked.

    An argument that is a numpy scalar becomes a Python value before the check, and the function
    gets this value. In ``*args`` and ``**kwargs`` the check is the same, but the function gets the
    scalar. In a list a numpy scalar is checked as it is: a ``np.int64`` there is no int.

    Args:
        function: The function. Without it, a decorator is returned.
        **advice: What the error says further, by the parameter's name.
    """
    return _with_checked_arguments(lambda owner: None, advice, function)


@overload
def checked_while_open(function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def checked_while_open(**advice: str) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def checked_while_open(function: Any = None, /, **advice: str) -> Any:
    """Make a method of a session raise ArgumentTypeError, by the rules of ``checked``, and then
    SettingError if the session is closed. The arguments are those of ``checked``."""
    return _with_checked_arguments(lambda owner: owner._need_open(), advice, function)


def check_fields(record: Any) -> None:
    """Raise ArgumentTypeError if a field of a dataclass has another type than is annotated. A numpy
    scalar counts as its Python value. The fields stay as they are."""
    kind: Any = type(record)
    for name, hint in _hints(kind).items():
        _check_and_unwrap_argument(kind.__name__, name, getattr(record, name), hint, "")


def need_count(number: int | None, name: str) -> None:
    """Raise SettingError if a number, of tries or of rows, is less than 0. None is allowed."""
    if number is not None and number < 0:
        raise SettingError(f"{name}={number} is not a number from 0 on.", name=name)


def is_numpy_scalar(value: object) -> bool:
    """Whether a value is a scalar of numpy's, which is not imported for this question."""
    return type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0


def python_scalar(value: Any) -> Any:
    """Return the Python value of a numpy scalar. Times with nanoseconds are cut to microseconds,
    because Python has no smaller unit."""
    plain = value.item()
    if value.dtype.kind in "mM" and isinstance(plain, int):
        return value.astype(f"{value.dtype.kind}8[us]").item()
    return plain


def _with_checked_arguments(
    need_open: Callable[[Any], None], advice: Mapping[str, str], function: Callable[..., Any] | None
) -> Any:
    """Return the function with checks of its arguments before each call, or a decorator if there is
    no function. ``need_open`` is called after the checks, with ``self``, or with None if the first
    parameter has another name."""
    if function is None:
        return functools.partial(_with_checked_arguments, need_open, advice)
    signature = inspect.signature(function)
    has_owner = next(iter(signature.parameters), "") == "self"

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        """Check the arguments that are given, then call ``need_open``, then the function, and
        return the function's result."""
        bound = _bound_arguments(function, signature, args, options)
        _check_and_unwrap_arguments(function, bound, advice)
        need_open(args[0] if has_owner else None)
        return function(*bound.args, **bound.kwargs)

    return call


def _bound_arguments(
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> inspect.BoundArguments:
    """Return the arguments by the parameters' names. Raise ArgumentTypeError, with the function's
    parameters, if there are too many or too few, or if one has an unknown name."""
    try:
        return signature.bind(*args, **options)
    except TypeError as error:
        names = [name for name in signature.parameters if name != "self"]
        unknown = next((name for name in options if name not in names), None)
        hint = " or ".join(f"{name}=…" for name in similar_names(unknown or "", names))
        advice = f"Did you mean {hint}?" if hint else f"It takes {_in_words(signature)}."
        raise ArgumentTypeError(
            f"{function.__name__}(): {error}. {advice}",
            condition="WRONG_ARGUMENTS",
            sqlstate="42605",
        ) from None


def _in_words(signature: inspect.Signature) -> str:
    """Return the parameters of a function without their types and without self:
    ``(table, where=None)``."""
    bare = [
        parameter.replace(annotation=parameter.empty)
        for name, parameter in signature.parameters.items()
        if name != "self"
    ]
    return str(inspect.Signature(bare))


def _check_and_unwrap_arguments(
    function: Callable[..., Any], bound: inspect.BoundArguments, advice: Mapping[str, str]
) -> None:
    """Raise ArgumentTypeError for the first argument that does not fit its annotation, and replace
    numpy scalars in ``bound`` by their Python values, except in ``*args`` and ``**kwargs``, whose
    elements are only checked, one by one. A parameter without an annotation is not checked.
    ``advice``: what the error says further, by parameter."""
    hints, parameters = _hints(function), bound.signature.parameters
    for name, value in bound.arguments.items():
        if name not in hints:
            continue  # self
        words = advice.get(name, "")
        if parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            for key, option in value.items():
                _check_and_unwrap_argument(function.__name__, key, option, hints[name], words)
        elif parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            for element in value:
                _check_and_unwrap_argument(function.__name__, name, element, hints[name], words)
        else:
            bound.arguments[name] = _check_and_unwrap_argument(
                function.__name__, name, value, hints[name], words
            )


def _check_and_unwrap_argument(
    function_name: str, name: str, value: Any, type_hint: Any, advice: str
) -> Any:
    """Raise ArgumentTypeError if an argument does not fit its type hint; otherwise return it. A
    numpy scalar is checked and returned as its Python value; those in a list stay as they are.
    ``advice``: the last sentence of the message. If it is "", and a Column would be right in the
    place of a literal, the message advises ``F.lit``."""
    plain = python_scalar(value) if is_numpy_scalar(value) else value
    fault = _find_misfit(plain, type_hint, name)
    if fault is None:
        return plain
    place, part, expected = fault
    kind = type(part).__name__
    shown = kind
    if isinstance(part, _SCALARS):  # Spark runs a job for the representation of a DataFrame
        text = repr(part)
        text = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
        shown = f"{text} ({kind})"
        if not advice and _allows_column(expected):
            advice = f"For a value, pass F.lit({text})."
    shown = "None" if part is None else shown
    raise ArgumentTypeError(
        f"{function_name}(): {place} should be {_hint_in_words(expected)}, and is {shown}."
        f"{f' {advice}' if advice else ''}",
        arg_name=name, expected_type=_hint_in_words(expected), arg_type=kind,
    )  # fmt: skip


@functools.cache
def _hints(owner: Any) -> dict[str, Any]:
    """Return parameter → type of a function, or field → type of a dataclass."""
    hints = typing.get_type_hints(owner, include_extras=True)
    hints.pop("return", None)
    return hints


# A value that does not fit: its place in the argument, the value, and the type that it should have.
_Misfit = tuple[str, Any, Any]


def _find_misfit(value: Any, hint: Any, place: str) -> _Misfit | None:
    """Return the first value in an argument that does not fit its type hint, as (its place, the
    value, the expected type); None if all of it fits. ``place`` is how messages name ``value``, as
    ``rows[0]``.

    The elements of lists and tuples are looked at in order, the keys of a dict before its values. A
    text is no list. A tuple has as many elements as its hint. A Literal has the type of a choice,
    too. Of any other hint, such as ``set[str]``, only the class counts. The text in an
    ``Annotated[type, text]`` is the name of the type in messages.
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return None
    if origin is Annotated:
        fault = _find_misfit(value, inner[0], place)
        return (place, value, hint) if fault is not None and fault[0] == place else fault
    if origin in (Union, types.UnionType):
        return _misfit_of_union(value, hint, inner, place)
    if origin is Literal:
        is_right = any(type(value) is type(choice) and value == choice for choice in inner)
    elif origin in (Sequence, list):
        if isinstance(value, origin) and not isinstance(value, str | bytes | bytearray | Mapping):
            return _first_misfit(
                _find_misfit(element, inner[0], f"{place}[{i}]") for i, element in enumerate(value)
            )
        is_right = False
    elif origin in (Mapping, dict):
        if isinstance(value, origin):
            keys = (_find_misfit(key, inner[0], f"a key of {place}") for key in value)
            entries = (
                _find_misfit(entry, inner[1], f"{place}[{key!r}]") for key, entry in value.items()
            )
            return _first_misfit(keys) or _first_misfit(entries)
        is_right = False
    elif origin is tuple:
        is_right = isinstance(value, tuple) and len(value) == len(inner)
        if is_right:
            return _first_misfit(
                _find_misfit(value[i], part, f"{place}[{i}]") for i, part in enumerate(inner)
            )
    else:
        is_right = _is_instance(value, origin or hint)
    return None if is_right else (place, value, hint)


def _misfit_of_union(value: Any, hint: Any, choices: Sequence[Any], place: str) -> _Misfit | None:
    """Return None if a value fits one of several types (``choices``, those of ``hint``). Otherwise
    return (place, value, expected type): of the first inner value that does not fit if the value is
    a list, tuple or dict, as one of the types asks, else of ``value``."""
    faults = [_find_misfit(value, choice, place) for choice in choices]
    if None in faults:
        return None
    inside = [fault for fault in faults if fault is not None and fault[0] != place]
    return inside[0] if inside else (place, value, hint)


def _first_misfit(faults: Iterable[_Misfit | None]) -> _Misfit | None:
    """Return the first that is not None; None if all are."""
    return next((fault for fault in faults if fault is not None), None)


def _is_instance(value: Any, kind: Any) -> bool:
    """Whether a value is of a class. True and False are of ``bool`` alone, and an integer is a
    float. For ``Callable`` anything that can be called will do. A class of Spark Connect stands for
    the classic one of its name."""
    if kind is Callable:
        return callable(value)
    if isinstance(value, bool):
        return kind is bool
    if isinstance(value, int) and kind is float:
        return True
    if issubclass(type(value), kind):  # not isinstance, which asks a Column for attributes
        return True
    # Classes of Spark Connect have the names of the classic ones; not all are derived from them.
    return kind.__module__.startswith("pyspark.") and any(
        base.__name__ == kind.__name__ and base.__module__.startswith("pyspark.sql.connect.")
        for base in type(value).__mro__
    )


def _allows_column(hint: Any) -> bool:
    """Whether one of the types in a type hint is a Spark Column."""
    return any(getattr(kind, "__name__", "") == "Column" for kind in typing.get_args(hint))


def _hint_in_words(hint: Any) -> str:
    """Return a type as error messages name it: "str or None", "a list of str", "a tuple of str and
    int", "a dict from str to int", "'a' or 'b'" for a Literal, "a function", "anything" for Any,
    the text of an Annotated, or the name of a class."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return str(inner[1])
    if origin in (Union, types.UnionType):
        words = [_hint_in_words(choice) for choice in inner]
        return f"{', '.join(words[:-1])} or {words[-1]}"
    if origin is Literal:
        return " or ".join(repr(choice) for choice in inner)
    if origin in (Sequence, list):
        return f"a list of {_hint_in_words(inner[0])}"
    if origin in (Mapping, dict):
        return f"a dict from {_hint_in_words(inner[0])} to {_hint_in_words(inner[1])}"
    if origin is tuple:
        return f"a tuple of {' and '.join(map(_hint_in_words, inner))}"
    if hint is Any:
        return "anything"
    if hint in (None, types.NoneType):
        return "None"
    return "a function" if origin is Callable else str(getattr(origin or hint, "__name__", hint))
