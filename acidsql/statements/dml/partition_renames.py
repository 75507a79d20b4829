"""ALTER TABLE … PARTITION … RENAME TO PARTITION: an UPDATE of the partition's columns.

The rows get new row ids in the new partition, as in each UPDATE that moves rows. The same commit
takes the old partition out of the catalog. So the condition of the UPDATE must be true for each row
of the old partition, whatever the session's settings are: the types of the partition columns are
those that have one text for each value. The old files are deleted after the commit: first those
with the old rows, last those with the delete events. So if the session dies in between, and the old
partition is added again, no old row comes back.
"""

from __future__ import annotations

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import Table
from acidsql.acid.values.types import parse_type
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.metastore.interface import Commit, Operation
from acidsql.plan.locking import exclusive_lock
from acidsql.plan.rewrite import PreparedStatement
from acidsql.sql.parsed import statements as st
from acidsql.statements.context.family import Context, Family, runs
from acidsql.statements.context.result import Clock, Receipt, receipt
from acidsql.statements.context.statement_text import StatementText
from acidsql.statements.ddl.partitions import publish_empty_directories
from acidsql.statements.directories.places import Places
from acidsql.statements.dml.phases import Phases
from acidsql.statements.dml.prepare import Changing
from acidsql.storage.columns import literal, quote, quoted_path
from acidsql.storage.reading.pruning.known_partitions import canonical_partition_values

_RENAMABLE_TYPES = frozenset(
    {"tinyint", "smallint", "int", "bigint", "decimal", "string", "varchar", "date", "boolean"}
)


class PartitionRenames(Family):
    """Runs RENAME TO PARTITION for one session."""

    def __init__(self, context: Context, phases: Phases) -> None:
        super().__init__(context)
        self._phases, self._places = phases, Places(context.metastore)

    @runs(st.RenamePartition)
    def _rename_partition(self, statement: st.RenamePartition, text: str) -> Receipt:
        """Run RENAME TO PARTITION in a transaction of its own, under the table's EXCLUSIVE lock: an
        UPDATE moves the rows, the commit drops the old partition, and then its directories are
        deleted. Return the receipt of the UPDATE. Raise AnalysisError if there is no old partition
        or the new one exists already, UnsupportedError if a partition column's type has several
        texts for one value."""
        table = self._names.require_table(statement.name, text, at_a_glance=True)
        old_and_new = self._old_and_new_partitions(table, statement, text)
        update_statement, statement_text, prepared = self._moving_update(table, *old_and_new)
        clock, own_transaction = Clock(), self._transactions.own_transaction(text)
        with (
            own_transaction as transaction,
            transaction.statement("RENAME PARTITION", text) as work,
        ):
            with clock("hold"):
                transaction.txn.lock(
                    [exclusive_lock(table.name, Operation.UPDATE)], agent_info=text
                )
                table = self._look_up_again(table.name)
                earlier, old_and_new = (
                    old_and_new,
                    self._old_and_new_partitions(table, statement, text),
                )
                if old_and_new != earlier:
                    update_statement, statement_text, prepared = self._moving_update(
                        table, *old_and_new
                    )
                held = self._phases.holder.hold(
                    transaction.txn, update_statement, statement_text, prepared
                )
            old_partitions, new_partition = old_and_new
            old_files = self._places.child_directories(table, old_partitions)
            publish_empty_directories(
                transaction.txn, work, table, [new_partition], overwrite=False
            )
            self._phases.writer.write(transaction, held, statement_text, clock, work)
            with clock("keep"):
                dropped = {table.name: [*map(_partition_values, old_partitions)]}
                transaction.commit(commit=Commit(dropped_partitions=dropped))
        old_prefixes = tuple(f"{table.location}/{partition}/" for partition in old_partitions)
        delete_directories = [path for _, path in work.directories if path.startswith(old_prefixes)]
        self._places.remove(table, old_partitions, [*old_files, *delete_directories])
        return receipt(text, transaction.id, work.published, clock.seconds, transaction.compaction)

    def _old_and_new_partitions(
        self, table: Table, statement: st.RenamePartition, text: str
    ) -> tuple[list[str], str]:
        """Return the names of the old partition's directories, and the name of the new partition's
        directory, which does not exist. Names are relative to the table's directory, such as
        ``p1=a/p2=1``.

        Programs other than Hive may have made several directories for one value, such as p=1 and
        p=01. So the old partition may have several.

        Raises:
            AnalysisError: There is no old partition, the new partition exists already, or a clause
                does not name all columns, or names another.
            ConstraintError: A value does not fit its column's type.
            UnsupportedError: A partition column has a type that has several texts for one value,
                such as double or timestamp.
        """
        for column in table.partition_columns:
            if parse_type(column.type).kind not in _RENAMABLE_TYPES:
                raise UnsupportedError(
                    f"A partition by {column.name} {column.type.upper()} is not renamed: UPDATE "
                    "moves its rows, and DROP PARTITION drops it.",
                    text, statement.name.span.start, statement.name.span.end,
                )  # fmt: skip
        new_spec, old_spec = statement.new_partition, statement.partition
        _, new_partition = self._partitions.fully_named_partitions(
            table, [old_spec, new_spec], text
        )
        old_partitions = self._partitions.matching_partitions(table, [old_spec], text)
        if new_partition in self._catalog.partition_names(table):
            raise AnalysisError(
                f"{table.name} has the partition {new_partition} already: UPDATE moves rows into "
                "it. If it is empty, DROP PARTITION drops it.",
                text, new_spec[0].span.start, new_spec[-1].span.end,
                condition="PARTITIONS_ALREADY_EXIST", sqlstate="428FT",
            )  # fmt: skip
        return old_partitions, new_partition

    def _moving_update(
        self, table: Table, old_partitions: list[str], new_partition: str
    ) -> tuple[Changing, StatementText, PreparedStatement]:
        """Compose and prepare the UPDATE that gives the rows of the old partition the values of the
        new one; nothing is locked or written. All of ``old_partitions`` have the same values.
        Return the parsed UPDATE, its text, and the prepared statement."""
        column_names = [quote(column.name) for column in table.partition_columns]
        types = [column.type for column in table.partition_columns]
        # Another program may have named the old directory otherwise than by its value's text.
        old_values = canonical_partition_values(self._spark, table, [old_partitions[0]])[
            old_partitions[0]
        ]
        old_sql = [_value_sql(*pair) for pair in zip(old_values, types, strict=True)]
        new_sql = [
            _value_sql(*pair) for pair in zip(_partition_values(new_partition), types, strict=True)
        ]
        sets = ", ".join(
            f"{name} = {value}" for name, value in zip(column_names, new_sql, strict=True)
        )
        condition = " AND ".join(
            f"{name} IS NULL" if value == "NULL" else f"{name} = {value}"
            for name, value in zip(column_names, old_sql, strict=True)
        )
        path = quoted_path((table.name.database, table.name.name))
        return self._phases.preparer.prepare_text(f"UPDATE {path}\nSET {sets}\nWHERE {condition}")


def _partition_values(partition: str) -> tuple[str | None, ...]:
    return tuple(value for _, value in parse_partition_name(partition))


def _value_sql(value: str | None, column_type: str) -> str:
    """Return a partition's value as SQL: a string literal for STRING and VARCHAR, else a CAST of
    this literal to the column's type; ``NULL`` for None."""
    if value is None:
        return "NULL"
    is_text = column_type == "string" or column_type.startswith("varchar")
    return literal(value) if is_text else f"CAST({literal(value)} AS {column_type})"
