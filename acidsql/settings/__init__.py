"""Every limit, interval and time-out: its unit, the Hive parameter that it mirrors, the default.

``limits`` holds all settings of a session as one frozen value. ``compactor`` holds those about
compaction. ``kinds`` says what a setting is: a duration, a number, a choice. Read ``limits`` first.

This package is values and their checks. It must not know the users of a setting.
"""

from acidsql.settings.limits import (
    DEFAULT_PARTITION_NAME,
    FIRST_LOCK_SLEEP_MS,
    LEAST_LOCK_SLEEP_CAP_MS,
    SPARK_PREFIX,
    Settings,
    known_settings,
    setting_name,
)

__all__ = [
    "DEFAULT_PARTITION_NAME",
    "FIRST_LOCK_SLEEP_MS",
    "LEAST_LOCK_SLEEP_CAP_MS",
    "SPARK_PREFIX",
    "Settings",
    "known_settings",
    "setting_name",
]
