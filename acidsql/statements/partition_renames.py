"""ALTER TABLE … PARTITION … RENAME TO PARTITION: an UPDATE of the partition's columns.

The rows get new row ids in the new partition, as in each UPDATE that moves rows. The same commit
takes the old partition out of the catalog. So the condition of the UPDATE must be true for each row
of it, whatever the session's settings are: the types of the columns are those that have one text
for each value. The old files are deleted after the commit: those with
the old rows first, those with the delete events last. So if the session dies in between, and the
old partition is added again, no old row comes back.
"""

from __future__ import annotations

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import Table
from acidsql.acid.types import parse_type
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.metastore.interface import Operation
from acidsql.plan.locking import exclusive
from acidsql.plan.rewrite import Prepared
from acidsql.sql import statements as st
from acidsql.statements.family import Context, Family, runs
from acidsql.statements.hold import Holder
from acidsql.statements.partitions import publish_empty
from acidsql.statements.places import Places
from acidsql.statements.prepare import Changing, Preparer
from acidsql.statements.result import Clock, Receipt, receipt
from acidsql.statements.statement_text import StatementText
from acidsql.statements.write import Writer
from acidsql.storage.columns import literal, quote, quoted_path
from acidsql.storage.reading.known_partitions import partition_values

_KINDS = frozenset(
    {"tinyint", "smallint", "int", "bigint", "decimal", "string", "varchar", "date", "boolean"}
)


class PartitionRenames(Family):
    """Runs this statement for one session."""

    def __init__(
        self, context: Context, preparer: Preparer, holder: Holder, writer: Writer
    ) -> None:
        super().__init__(context)
        self._preparer, self._holder, self._writer = preparer, holder, writer
        self._places = Places(context.metastore)

    @runs(st.RenamePartition)
    def _rename(self, statement: st.RenamePartition, text: str) -> Receipt:
        table = self._names.require_table(statement.name, text, at_a_glance=True)
        places = self._old_and_new(table, statement, text)
        update, said, prepared = self._update(table, *places)
        clock, own = Clock(), self._transactions.own(text)
        with own as transaction, transaction.statement("RENAME PARTITION", text) as work:
            with clock("hold"):
                transaction.txn.lock([exclusive(table.name, Operation.UPDATE)], agent_info=text)
                table = self._again(table.name)
                before, places = places, self._old_and_new(table, statement, text)
                if places != before:
                    update, said, prepared = self._update(table, *places)
                held = self._holder.hold(transaction.txn, update, said, prepared)
            old, new = places
            old_files = self._places.directories(table, old)
            publish_empty(transaction.txn, work, table, [new], overwrite=False)
            self._writer.write(transaction, held, said, clock, work)
            with clock("keep"):
                transaction.commit(drop_partitions={table.name: [*map(_values, old)]})
        inside = tuple(f"{table.location}/{one}/" for one in old)
        deletes = [path for _, path in work.directories if path.startswith(inside)]
        self._places.remove(table, old, [*old_files, *deletes])
        return receipt(text, transaction.id, work.published, clock.seconds, transaction.compaction)

    def _old_and_new(
        self, table: Table, statement: st.RenamePartition, text: str
    ) -> tuple[list[str], str]:
        """The directories of the old partition, and of the new one. Others than Hive may have made
        several for one value, such as p=1 and p=01.

        Raises:
            AnalysisError: The old partition is not there, or the new one is, or a clause does not
                name all columns.
            UnsupportedError: A column has another type.
        """
        for column in table.partition_columns:
            if parse_type(column.type).kind not in _KINDS:
                raise UnsupportedError(
                    f"A partition by {column.name} {column.type.upper()} is not renamed: UPDATE "
                    "moves its rows, and DROP PARTITION drops it.",
                    text, statement.name.span.start, statement.name.span.end,
                )  # fmt: skip
        new, spec = statement.new_partition, statement.partition
        _, name = self._partitions.wholly_named(table, [spec, new], text)
        old = self._partitions.matching(table, [spec], text)
        if name in self._transactions.partition_names(table):
            raise AnalysisError(
                f"{table.name} has the partition {name} already: UPDATE moves rows into it. If it "
                "is empty, DROP PARTITION drops it.",
                text, new[0].span.start, new[-1].span.end,
                condition="PARTITIONS_ALREADY_EXIST", sqlstate="428FT",
            )  # fmt: skip
        return old, name

    def _update(
        self, table: Table, old: list[str], new: str
    ) -> tuple[Changing, StatementText, Prepared]:
        """The UPDATE that moves the rows, as ``Preparer.of_text``."""
        names = [quote(column.name) for column in table.partition_columns]
        kinds = [column.type for column in table.partition_columns]
        # The name of an old directory, which others may have given, need not be its value's text.
        old_values = partition_values(self._spark, table, [old[0]])[old[0]]
        was = [_sql(*pair) for pair in zip(old_values, kinds, strict=True)]
        becomes = [_sql(*pair) for pair in zip(_values(new), kinds, strict=True)]
        sets = ", ".join(f"{name} = {value}" for name, value in zip(names, becomes, strict=True))
        where = " AND ".join(
            f"{name} IS NULL" if value == "NULL" else f"{name} = {value}"
            for name, value in zip(names, was, strict=True)
        )
        path = quoted_path((table.name.database, table.name.name))
        return self._preparer.of_text(f"UPDATE {path}\nSET {sets}\nWHERE {where}")


def _values(partition: str) -> tuple[str | None, ...]:
    return tuple(value for _, value in parse_partition_name(partition))


def _sql(value: str | None, kind: str) -> str:
    """A partition's value as SQL."""
    if value is None:
        return "NULL"
    is_text = kind == "string" or kind.startswith("varchar")
    return literal(value) if is_text else f"CAST({literal(value)} AS {kind})"
