"""The time zone of Spark's JVM, in which wall clocks of ORC files are read."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from acidsql.storage.spark.session.java_classes import java_class
from acidsql.storage.spark.session.jvm import is_remote


def zone_offset_micros(spark: SparkSession) -> int | None:
    """Return the offset of the JVM's default time zone from UTC, in microseconds.

    None if the offset depends on the date. Then Spark's ORC reader cannot give every wall clock
    (two wall clocks give one instant where a clock is put forward).
    """
    if is_remote(spark):
        return _servers_offset(spark)
    jvm = spark._jvm
    rules = java_class(jvm, "java.time.ZoneId").systemDefault().getRules()
    if not rules.isFixedOffset():
        return None
    now = java_class(jvm, "java.time.Instant").now()
    return int(rules.getOffset(now).getTotalSeconds()) * 1_000_000


_OFFSETS: WeakKeyDictionary[SparkSession, int | None] = WeakKeyDictionary()
# The ids that Java gives to zones whose offset is always the same.
_OFFSET = re.compile(
    r"(?:Etc/)?(?:UTC|GMT|UT|UCT|Universal|Zulu|Greenwich)|Z"
    r"|(?:UTC|GMT|UT)?([+-])(\d\d):(\d\d)(?::(\d\d))?"
)


def _servers_offset(spark: SparkSession) -> int | None:
    """Return the offset, in microseconds, of the default time zone of a server of Spark Connect;
    None if it depends on the date, or the server does not tell. The first call for a session asks
    the server.
    """
    if spark not in _OFFSETS:
        query = "SELECT java_method('java.time.ZoneId', 'systemDefault')"
        try:
            ((zone,),) = spark.sql(query).collect()
        except AnalysisException:  # a server may not let its users call Java
            zone = ""
        _OFFSETS[spark] = fixed_offset(zone or "")
    return _OFFSETS[spark]


def fixed_offset(zone: str) -> int | None:
    """Return the offset from UTC, in microseconds, of a time zone by Java's name, as ``Etc/UTC`` or
    ``GMT+02:00``; None for a name of any other form (``Etc/GMT+2``, too), as the offset may depend
    on the date.
    """
    offset_match = _OFFSET.fullmatch(zone)
    if offset_match is None:
        return None
    sign, *parts = offset_match.groups()
    hours, minutes, seconds = (int(part or 0) for part in parts)
    offset = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
    return -offset if sign == "-" else offset
