"""Explains errors about names of tables that do not exist: which other thing has the name, or which
names are similar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from acidsql.acid.table import Table
from acidsql.errors import AnalysisError, CatalogError
from acidsql.metastore.catalog import Catalog
from acidsql.plan.analysis.lower import no_log
from acidsql.plan.rows.targets import Targets, place_of_name
from acidsql.plan.standins.names import NameResolver
from acidsql.sql.text.tokens import Span, tokenize
from acidsql.storage.columns import quoted_path
from acidsql.storage.spark.catalog_names import relation_kind, table_names
from acidsql.storage.spark.session.jvm import OWN_CATALOG
from acidsql.suggestions import names_question

_QUOTED = re.compile(r"`((?:[^`]|``)+)`")


class MissingNames:
    """Explains errors about names, in one session's statements, that no table or view has.

    Args:
        spark: The Spark session.
        catalog: Has the names of the metastore's tables.
        names: Resolves names.
    """

    def __init__(self, spark: SparkSession, catalog: Catalog, names: NameResolver) -> None:
        self._spark, self._catalog, self._names = spark, catalog, names
        self._targets = Targets(spark, names)

    @contextmanager
    def explain_errors(self, text: str) -> Iterator[None]:
        """If there is no table or view of a name in the ``with`` block, raise an error that tells
        more about the name. Other errors pass, as do errors about names in the query of a view.
        PySpark does not log Spark's errors.

        Args:
            text: The statement.

        Raises:
            UnsupportedError: The metastore has a table or view of this name that acidsql does not
                read; or the statement's target is a table of Spark's.
            AnalysisError: TABLE_OR_VIEW_NOT_FOUND, with a caret and with similar names; or the
                statement's target is a view.
        """
        try:
            # The error is raised, so PySpark need not log it, too.
            with no_log(), self._targets.explain_errors(text):
                yield
        except (AnalysisException, AnalysisError) as error:
            if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND" or _is_of_view(error):
                raise
            parts = self._parts_of_missing_name(error, text)
            if (foreign := self._names.find_foreign(parts) if parts else None) is not None:
                raise foreign.refused_error() from error
            raise self._with_suggestions(error, parts, text) from None

    def require_table(self, table: Table | None, parts: tuple[str, ...]) -> Table:
        """Return ``table``, the ACID table or view that a method's argument names.

        Raises:
            CatalogError: ``table`` is None. The message says what Spark has of this name, or which
                names are similar.
        """
        if table is not None:
            return table
        name, kind = ".".join(parts), relation_kind(self._spark, parts)
        meaning = "" if kind is None else f": it is {kind.value}"
        hint = self.hint(parts) if kind is None else ""
        raise CatalogError(f"There is no ACID table '{name}'{meaning}.{hint}", table=name)

    def hint(self, parts: tuple[str, ...], *, has_sparks: bool = False) -> str:
        """Return a question, with a blank before it, that names the similar tables and views of the
        metastore, and with ``has_sparks`` those of Spark, too; "" if there are none. ``parts``: a
        name that no table has."""
        name = self._names.qualify(parts) if parts else None
        if name is None:  # not a name of the metastore's
            return ""
        return names_question(name.shown, self._existing_names(name.database, has_sparks))

    def _parts_of_missing_name(
        self, error: AnalysisException | AnalysisError, text: str
    ) -> tuple[str, ...]:
        """Return the parts of the missing name without a leading ``spark_catalog``; () if the error
        has no name. An error of Spark's gives the name; for one of ours, the name stands at the
        error's place in the error's own text, or else in ``text``."""
        if isinstance(error, AnalysisError):
            stated = (error.text or text)[error.start : error.end]
            parts = [token.value for token in tokenize(stated) if token.is_name]
        else:
            quoted = (error.getMessageParameters() or {}).get("relationName", "")
            parts = [part.replace("``", "`") for part in _QUOTED.findall(quoted)]
        return tuple(parts[1:] if parts[:1] == [OWN_CATALOG] else parts)

    def _with_suggestions(
        self, error: AnalysisException | AnalysisError, parts: tuple[str, ...], text: str
    ) -> AnalysisError:
        """Return a TABLE_OR_VIEW_NOT_FOUND with a caret at the name, and with the similar names as
        a hint if there are some."""
        if isinstance(error, AnalysisError):
            message, place = error.words, Span(error.start, error.end)
            text = error.text or text  # with the variables substituted
        else:
            message = f"There is no table or view {quoted_path(parts)}."
            place = place_of_name(parts, text)
        return AnalysisError(
            message + self.hint(parts, has_sparks=True),
            text, place.start, place.end,
            condition="TABLE_OR_VIEW_NOT_FOUND", sqlstate="42P01",
        )  # fmt: skip

    def _existing_names(self, database: str, has_sparks: bool) -> set[str]:
        """Return the names of the tables and views in a database; those of Spark's own, and
        temporary views, only if ``has_sparks``. Errors while listing are ignored: the error that
        is explained must come through. Py4J's, of a catalog that does not answer, are no
        PySparkExceptions."""
        existing_names: set[str] = set()
        with suppress(Exception):
            existing_names.update(self._catalog.tables(database))
            existing_names.update(self._catalog.views(database))
        if has_sparks:
            with suppress(Exception):
                existing_names.update(table_names(self._spark, database))
        return existing_names


def _is_of_view(error: AnalysisException | AnalysisError) -> bool:
    """Whether the name stands in the query of a view, and not in the statement."""
    return isinstance(error, AnalysisError) and error.text is None
