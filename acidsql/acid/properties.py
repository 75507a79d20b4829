"""The properties of a table that acidsql knows, with their meaning in words for users.

``orc.…`` are in ``storage/orc/options.py``. Other properties are kept and have no effect, but a new
one must not begin with ``acidsql.``: it is a misspelt name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from acidsql.acid import cdc
from acidsql.acid.table import MOVING, STATISTICS, TRANSACTIONAL, TRANSACTIONAL_PROPERTIES
from acidsql.errors import SettingError, suggestion

NO_AUTO_COMPACTION = "NO_AUTO_COMPACTION"
WORKER_POOL = "hive.compactor.worker.pool"
THRESHOLD = "compactorthreshold."
HISTORY_RETENTION = "acidsql.history.retention"
HISTORY_MAX_RATIO = "acidsql.history.max.ratio"
CHANGE_KEY = "acidsql.key"


@dataclass(frozen=True, slots=True)
class Property:
    """A property as a user sees it.

    Attributes:
        name: The name, as in TBLPROPERTIES.
        default: What holds without it; empty if nothing does.
        doc: What it does.
    """

    name: str
    default: str
    doc: str


TABLE_PROPERTIES = (
    Property(TRANSACTIONAL, "true", "All tables that CREATE TABLE makes here are ACID tables. "
             "ALTER TABLE sets it for a plain table of a Hive Metastore, which becomes ACID."),
    Property(TRANSACTIONAL_PROPERTIES, "default", "default: rows can be inserted, updated and "
             "deleted. insert_only: they can be inserted and overwritten, and files are plain."),
    Property(CHANGE_KEY, "", "The columns, separated by commas, that tell which deleted and "
             "inserted row are an update, in changes and in REVERT TRANSACTION … SKIP CONFLICTS."),
    Property(NO_AUTO_COMPACTION, "false", "true: the table is compacted only if somebody asks."),
    Property(f"{THRESHOLD}…", "", "The table's own value of a setting of compaction, such as "
             "compactorthreshold.hive.compactor.delta.num.threshold."),
    Property(WORKER_POOL, "default", "The pool of workers that compacts the table."),
    Property(HISTORY_RETENTION, "", "The table's own value of the setting of this name."),
    Property(HISTORY_MAX_RATIO, "", "The table's own value of the setting of this name."),
    Property(cdc.KEYS, "", "AUTO CDC: the KEYS, if the statement names none."),
    Property(cdc.SEQUENCE_BY, "", "AUTO CDC: the expression of SEQUENCE BY."),
    Property(cdc.DELETE_WHEN, "", "AUTO CDC: the condition of APPLY AS DELETE WHEN."),
    Property(cdc.TRUNCATE_WHEN, "", "AUTO CDC: the condition of APPLY AS TRUNCATE WHEN."),
    Property(cdc.TOMBSTONE_RETENTION, "", "AUTO CDC: how long deletes are kept, such as 30d (a "
             "number alone: hours). Default: for ever."),
)  # fmt: skip

_OWN_PREFIX = "acidsql."
# acidsql itself writes these, and SHOW CREATE TABLE shows them.
_WRITTEN = (MOVING, cdc.ORDER, cdc.SCD_TYPE, cdc.NUM_KEYS, cdc.PENDING)
_WRITTEN_PREFIXES = (cdc.BOND, STATISTICS)


def need_known_name(name: str) -> None:
    """Raise SettingError INVALID_PROPERTY_KEY, with the most similar names, if a property's name
    begins with ``acidsql.``, and acidsql has no such property. The case of letters does not
    matter."""
    key = name.lower()
    own_names = [known.name for known in TABLE_PROPERTIES if known.name.startswith(_OWN_PREFIX)]
    if (
        not key.startswith(_OWN_PREFIX)
        or key in (*own_names, *_WRITTEN)
        or key.startswith(_WRITTEN_PREFIXES)
    ):
        return
    hint = suggestion(key, own_names) or f" Known are: {', '.join(own_names)}."
    raise SettingError(
        f"There is no property '{name}' of tables.{hint}",
        condition="INVALID_PROPERTY_KEY", sqlstate="42602", key=name,
    )  # fmt: skip


def property_value(properties: Mapping[str, str], name: str) -> str | None:
    """Return the value of a property, None if it is not there. The case of letters in the names of
    ``properties`` does not matter; of several, the one in lower case is taken, otherwise the first.

    ``name``: the property's name, in lower case.
    """
    other_spellings = (text for key, text in properties.items() if key.lower() == name)
    return properties.get(name, next(other_spellings, None))
