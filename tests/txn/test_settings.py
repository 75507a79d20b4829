"""Settings: Hive's names, units and defaults; clear errors for wrong values."""

import dataclasses

import pytest

from acidsql.errors import SettingError
from acidsql.settings import Settings, known_settings, setting_name


def test_the_defaults_are_hives():
    settings = Settings()
    assert settings.txn_timeout_ms == 300_000
    assert settings.heartbeat_interval_ms == 150_000
    assert settings.lock_numretries == 100
    assert settings.lock_sleep_between_retries_ms == 60_000
    assert settings.max_dynamic_partitions == 1000
    assert settings.values_max_rows == 10_000
    assert settings.default_partition_name == "__HIVE_DEFAULT_PARTITION__"


def test_the_whole_wait_for_a_lock_is_hives():
    """hive-transactions.md §4.4: 102.3 s + 90 × 60 s, about 91 min 42 s."""
    assert Settings().lock_wait_ms == 102_300 + 90 * 60_000


@pytest.mark.parametrize(
    "retries, pause, wait_ms",
    [
        (1, "60s", 100),
        (3, "60s", 700),
        (9, "1s", 25_500 + 15_000),  # never less than 15 s
        (10, "10s", 25_500 + 2 * 15_000),
    ],
)
def test_fewer_retries_wait_less(retries, pause, wait_ms):
    settings = Settings.of(
        {"hive.lock.numretries": retries, "hive.lock.sleep.between.retries": pause}
    )
    assert settings.lock_wait_ms == wait_ms


@pytest.mark.parametrize(
    "text, milliseconds",
    [
        ("300s", 300_000),
        ("300", 300_000),  # Hive's unit for this parameter
        (300, 300_000),
        ("100ms", 100),
        ("100 msec", 100),
        ("5min", 300_000),
        ("5m", 300_000),
        (" 2 HOURS ", 7_200_000),
        ("1d", 86_400_000),
        ("20000us", 20),
        ("20000000ns", 20),
    ],
)
def test_durations_are_read_as_hive_reads_them(text, milliseconds):
    assert Settings.of({"hive.txn.timeout": text}).txn_timeout_ms == milliseconds


@pytest.mark.parametrize(
    "name, value",
    [
        ("hive.txn.timeout", "soon"),
        ("hive.txn.timeout", "-5s"),
        ("hive.txn.timeout", "0s"),
        ("hive.txn.timeout", "5 weeks"),
        ("hive.txn.timeout", ""),
        ("hive.txn.timeout", None),
        ("hive.txn.timeout", "1.5s"),
        ("hive.lock.numretries", "0"),
        ("hive.lock.numretries", "many"),
        ("hive.lock.numretries", "9" * 30),
        ("hive.lock.numretries", True),
        ("hive.exec.default.partition.name", "other"),
    ],
)
def test_a_bad_value_is_refused_with_name_value_and_what_is_expected(name, value):
    with pytest.raises(SettingError) as caught:
        Settings.of({name: value})
    message = str(caught.value)
    assert name in message and str(value) in message and "expected" in message


def test_an_unknown_name_is_refused_with_the_nearest_one():
    with pytest.raises(SettingError, match=r"Did you mean 'hive\.txn\.timeout'"):
        Settings.of({"hive.txn.timeot": "1s"})
    with pytest.raises(SettingError, match="Known are"):
        Settings.of({"x": "1s"})


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("acidsql.lock.poll.interval", "acidsql.lock.poll.interval"),
        ("hive.txn.timeout", "hive.txn.timeout"),
        ("spark.acidsql.lock.poll.interval", "acidsql.lock.poll.interval"),
        ("spark.acidsql.hive.txn.timeout", "hive.txn.timeout"),
        ("spark.acidsql.metastore.busy.timeout", "acidsql.metastore.busy.timeout"),
        (
            "spark.acidsql.metastore.acid.housekeeper.interval",
            "metastore.acid.housekeeper.interval",
        ),
        ("spark.acidsql.warehouse", None),
        ("spark.acidsql.metastore", None),
        ("spark.acidsql.storage.names", None),
        ("hive.txn.manager", None),  # one of Hive's
        ("spark.sql.ansi.enabled", None),
    ],
)
def test_a_name_in_set_or_in_the_spark_conf_means_a_setting_or_nothing_of_acidsqls(name, setting):
    assert setting_name(name) == setting


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("acidsql.lock.poll.intervall", "'acidsql.lock.poll.interval'"),
        ("ACIDSQL.lock.poll.interval", "'acidsql.lock.poll.interval'"),
        ("spark.acidsql.lock.pol.interval", "'acidsql.lock.poll.interval'"),
        ("spark.acidsql.hive.txn.timeot", "'hive.txn.timeout'"),
        ("spark.acidsql.x", "Known are"),
    ],
)
def test_a_misspelt_setting_is_refused_with_the_nearest_names(name, nearest):
    with pytest.raises(SettingError, match=nearest) as caught:
        setting_name(name)
    assert f"no setting '{name}'" in caught.value.message
    assert (caught.value.condition, caught.value.sqlstate) == ("UNKNOWN_SETTING", "22022")


def test_every_setting_can_be_given_by_the_spark_conf():
    for setting in known_settings():
        assert setting_name(f"spark.acidsql.{setting.name}") == setting.name
        short_name = setting.name.removeprefix("acidsql.")
        assert setting_name(f"spark.acidsql.{short_name}") == setting.name


def test_settings_cannot_be_changed_only_copied():
    settings = Settings()
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.txn_timeout_ms = 1
    assert settings.with_("hive.txn.timeout", "1s").txn_timeout_ms == 1000
    assert settings.txn_timeout_ms == 300_000


def test_items_give_the_same_settings_again():
    settings = Settings.of({"hive.txn.timeout": "90s", "acidsql.values.max.rows": "0"})
    assert Settings.of(dict(settings.items())) == settings


def test_every_setting_is_documented():
    for setting in known_settings():
        assert setting.doc.endswith(".") and setting.expects
