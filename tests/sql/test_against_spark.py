"""The language compared with Spark's own parser: the same tables, structure and allowed names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyspark
import pytest
from grammar_cases import Case, cases, sentences
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acidsql.errors import SqlError
from acidsql.sql.parsed.statements import (
    Action,
    Default,
    Delete,
    InsertAction,
    Merge,
    Statement,
    Update,
    UpdateAction,
)
from acidsql.sql.parser import parse
from acidsql.sql.queries.references import references

pytestmark = pytest.mark.spark

Catalyst = Callable[[str], str | None]
Read = Callable[..., Statement]

# Names of common table expressions begin with cte_, by which they are found in Spark's plan.
QUERIES = """
SELECT * FROM t
SELECT a, b FROM db.t AS x WHERE a = 1
SELECT * FROM t x, s y, db.u
SELECT * FROM t JOIN s ON t.a = s.a LEFT JOIN u USING (a) CROSS JOIN v
SELECT * FROM t LEFT SEMI JOIN s ON t.a = s.a
SELECT * FROM t NATURAL JOIN s
SELECT * FROM (SELECT * FROM t) x JOIN (SELECT * FROM s WHERE a IN (SELECT a FROM u)) y ON x.a = y.a
SELECT * FROM (t JOIN s ON t.a = s.a) LEFT JOIN (u x JOIN v) ON true
SELECT * FROM ((t))
SELECT * FROM ((SELECT 1) UNION ALL (SELECT * FROM t)) x
SELECT * FROM ((SELECT * FROM t) x JOIN s)
SELECT (SELECT max(a) FROM t) AS m, EXISTS (SELECT 1 FROM s WHERE s.a = u.a) FROM u
SELECT * FROM t WHERE (a, b) IN (SELECT a, b FROM s) AND NOT EXISTS (TABLE u)
SELECT extract(YEAR FROM d), trim(BOTH FROM x), trim(LEADING 'a' FROM x) FROM t
SELECT substring(x FROM 2 FOR 3), overlay(x PLACING 'y' FROM 2), position('a' IN x) FROM t
SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM c FROM t WHERE d IS DISTINCT FROM e
SELECT CASE WHEN a IS DISTINCT FROM b THEN 1 ELSE (SELECT 1 FROM s) END FROM t
SELECT * FROM t WHERE a IS NOT DISTINCT FROM (SELECT max(a) FROM s)
SELECT * FROM range(10) r, t
SELECT * FROM explode(array(1, (SELECT max(a) FROM s))) x, t
SELECT * FROM t LATERAL VIEW explode(arr) e AS c LATERAL VIEW OUTER posexplode(b) f AS d, g
SELECT * FROM t, LATERAL (SELECT * FROM s WHERE s.a = t.a) x
SELECT * FROM t, LATERAL explode(t.arr) x
SELECT * FROM t JOIN LATERAL (SELECT * FROM s) x ON true
SELECT * FROM VALUES (1, 2), (3, 4) AS v(a, b), t
SELECT * FROM VALUES 1, 2 AS v(a) JOIN t ON true
SELECT * FROM VALUES (DATE '2024-01-01'), (current_date()) v, t
SELECT * FROM (VALUES (1), (2)) AS v(a), t
VALUES (1, (SELECT max(a) FROM t)), (2, 3)
TABLE t
TABLE db.t
SELECT * FROM t UNION ALL SELECT * FROM s INTERSECT SELECT * FROM u EXCEPT SELECT * FROM v
(SELECT * FROM t) UNION (SELECT * FROM s) ORDER BY 1 LIMIT 3
SELECT * FROM t MINUS SELECT * FROM s
SELECT * EXCEPT (a) FROM t
SELECT t.* EXCEPT (a, b), s.* FROM t, s
SELECT * FROM t TABLESAMPLE (10 PERCENT) x, s TABLESAMPLE (5 ROWS)
SELECT * FROM t TABLESAMPLE (BUCKET 1 OUT OF 4) REPEATABLE (7) AS x
SELECT * FROM t VERSION AS OF 7 AS x JOIN s TIMESTAMP AS OF '2024-01-01' ON x.id = s.id
SELECT * FROM t FOR SYSTEM_VERSION AS OF 7, s
SELECT * FROM t TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY
SELECT * FROM t PIVOT (sum(a) FOR b IN (1, 2)), s
SELECT * FROM t UNPIVOT (v FOR n IN (a, b)) AS x
SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > (SELECT 1 FROM s) ORDER BY a LIMIT 3
SELECT a FROM t GROUP BY a WITH ROLLUP
SELECT a FROM t GROUP BY GROUPING SETS ((a), ()) ORDER BY (SELECT 1 FROM s)
SELECT sum(a) OVER (PARTITION BY b ORDER BY c), sum(d) OVER w FROM t WINDOW w AS (PARTITION BY e)
SELECT /*+ BROADCAST(s) */ * FROM t JOIN s ON t.a = s.a
SELECT /* FROM a */ * -- FROM b
SELECT 'FROM a', "FROM b", `FROM` FROM t
WITH cte_a AS (SELECT * FROM t) SELECT * FROM cte_a JOIN s
WITH cte_a AS (SELECT * FROM t), cte_b (x, y) AS (SELECT * FROM cte_a, u) SELECT * FROM cte_b
WITH cte_a AS (WITH cte_b AS (SELECT * FROM t) SELECT * FROM cte_b) SELECT * FROM cte_a
WITH RECURSIVE cte_r(n) AS (SELECT a FROM t UNION ALL SELECT n + 1 FROM cte_r) SELECT * FROM cte_r
SELECT * FROM (WITH cte_a AS (SELECT * FROM t) SELECT * FROM cte_a) x, s
SELECT a FROM s WHERE a IN (WITH cte_a AS (SELECT * FROM t) SELECT * FROM cte_a)
FROM t SELECT a, b WHERE c
FROM t x JOIN s SELECT TRANSFORM (a, b) USING 'cat' AS (c, d)
FROM (SELECT * FROM t) x SELECT a SELECT b WHERE c IN (SELECT * FROM s)
SELECT * FROM t TIMESTAMP AS OF '2024' x JOIN s VERSION AS OF 'v' y
SELECT * FROM t TIMESTAMP AS OF '2024' AS x, s TIMESTAMP AS OF now() - INTERVAL '1' DAY AS y, u
SELECT left FROM t WHERE a = b OR right = c
SELECT * FROM t INNER JOIN s USING (a) FULL OUTER JOIN u ON t.a = u.a RIGHT JOIN v ON true
SELECT * FROM (TABLE t) x, (VALUES 1) y, (FROM s SELECT a) z
SELECT * FROM (SELECT a FROM t UNION SELECT a FROM s) INTERSECT (TABLE u)
SELECT named_struct('a', a), array((SELECT 1)) FROM t
SELECT * FROM t WHERE exists(arr, x -> x > 1) AND EXISTS (FROM s SELECT 1)
SELECT a FROM t GROUP BY ALL ORDER BY ALL
SELECT * FROM t QUALIFY row_number() OVER (ORDER BY (SELECT 1 FROM s)) = 1
FROM t |> WHERE a = 1 |> SELECT a
FROM t |> JOIN s ON t.a = s.a |> AGGREGATE sum(a) GROUP BY b
FROM t |> UNION ALL (SELECT * FROM s) |> WHERE a IN (SELECT a FROM u)
SELECT * FROM t WHERE a BETWEEN (SELECT min(a) FROM s) AND (SELECT max(a) FROM u)
SELECT transform(arr, x -> x + (SELECT 1)), m['k'], st.a.b FROM t
SELECT count(*), count(DISTINCT a), struct(*), count(t.*) FROM t
SELECT a * b, 2 * (SELECT 1 FROM s), - a * 3 FROM t
SELECT DISTINCT * FROM t
SELECT ALL a, * FROM t
SELECT a FROM t ORDER BY a DESC NULLS LAST LIMIT 1 OFFSET 2
SELECT a FROM t DISTRIBUTE BY a SORT BY b
SELECT a FROM t CLUSTER BY a
SELECT any_value(a) FILTER (WHERE a IN (SELECT a FROM s)) FROM t
SELECT t.a, `my t`.b FROM t, `my t`, `a.b`.`c``d`
SELECT a::int, b:c.d, e <=> f, g || h FROM t
SELECT INTERVAL 1 DAY, DATE '2024-01-01', X'1F', 1L, 1.5BD, .5, 1e3 FROM t
SELECT * FROM t AS x(a, b), s y(c)
SELECT * FROM t ANTI JOIN s ON t.a = s.a
SELECT * FROM spark_catalog.db.t x
SELECT from_json(a, 'b INT') FROM t
SELECT 1
SELECT 1 WHERE EXISTS (SELECT 1 FROM t)
SELECT IF(a, b, c), LEFT(a, 1), RIGHT(a, 1) FROM t
SELECT * FROM t JOIN s ON extract(DAY FROM t.d) = 1, u
SELECT * FROM f(TABLE(t)), h(TABLE(SELECT * FROM s)), g(x => TABLE(u))
SELECT * FROM t WHERE a NOT IN (VALUES 1, 2)
INSERT INTO u SELECT * FROM t
INSERT INTO TABLE u REPLACE WHERE a IN (SELECT 1 FROM s) SELECT * FROM t
INSERT INTO TABLE u PARTITION (p = 1) (a, b) SELECT * FROM t
INSERT OVERWRITE u TABLE t
INSERT INTO u VALUES (1, (SELECT max(a) FROM t))
INSERT INTO u (SELECT * FROM t)
INSERT INTO u WITH cte_a AS (SELECT * FROM t) SELECT * FROM cte_a
WITH cte_a AS (SELECT * FROM t) INSERT INTO u SELECT * FROM cte_a
FROM t INSERT INTO u SELECT a WHERE b INSERT OVERWRITE v SELECT * WHERE a IN (SELECT 1 FROM s)
CREATE TEMPORARY VIEW w AS SELECT * FROM t
CREATE OR REPLACE GLOBAL TEMP VIEW w (a COMMENT 'x', b) COMMENT 'y' AS (SELECT * FROM t)
CREATE TABLE w USING parquet PARTITIONED BY (a) OPTIONS ('x' = 'y') AS SELECT * FROM t
CREATE TABLE w USING parquet SELECT * FROM t
CACHE LAZY TABLE w OPTIONS ('storageLevel' = 'DISK_ONLY') AS SELECT * FROM t
CACHE TABLE w SELECT * FROM t
EXPLAIN FORMATTED SELECT * FROM t
EXPLAIN INSERT INTO u SELECT * FROM t
DESCRIBE QUERY SELECT * FROM t
DESC WITH cte_a AS (SELECT 1) SELECT * FROM cte_a, t
""".strip().splitlines()
if pyspark.__version__ < "4.3":  # there the parser may not know the clause
    QUERIES = [query for query in QUERIES if "QUALIFY" not in query]

_TARGETS = {"u", "v", "w"}


def _relations(plan: str) -> Counter[str]:
    names = re.findall(r"(?:UnresolvedRelation|RelationTimeTravel.*?) \[([^\]]*)\]", plan)
    names = [name.replace(", ", ".") for name in names]
    return Counter(n for n in names if not n.startswith("cte_"))


@pytest.mark.parametrize("query", QUERIES)
def test_references_are_the_relations_that_spark_finds(query: str, catalyst: Catalyst) -> None:
    # For EXPLAIN and DESCRIBE Spark prints only the outermost node of the plan.
    plan = catalyst(re.sub(r"^(EXPLAIN|DESC(RIBE)?)( FORMATTED| QUERY)?", "", query))
    assert plan is not None, "the corpus holds a query that Spark does not parse"
    theirs = _relations(plan)
    ours = Counter(".".join(r.parts) for r in references(query).references)
    if query.startswith("FROM"):  # Spark repeats the source in each branch
        theirs, ours = Counter(set(theirs)), Counter(set(ours))
    if query.split()[0] in ("INSERT", "CREATE", "CACHE", "EXPLAIN") or "INSERT" in query:
        # Spark's plan also shows the target as a relation.
        theirs = Counter({n: c for n, c in theirs.items() if n not in _TARGETS})
        ours = Counter({n: c for n, c in ours.items() if n not in _TARGETS})
    assert ours == theirs, plan


@pytest.mark.parametrize(
    "template",
    [
        "SELECT {} FROM t",
        "SELECT a.{} FROM t a",
        "SELECT a AS {} FROM t",
        "SELECT a {} FROM t",
        "SELECT * FROM {}",
        "SELECT * FROM db.{} JOIN s",
        "SELECT * FROM t WHERE {} = 1",
        "SELECT * FROM t AS {}",
        "SELECT * FROM t {} WHERE x.a = 1",
        "SELECT f({}) FROM t",
        "SELECT * FROM t WHERE ({}) IN (SELECT 1 FROM s)",
    ],
)
def test_a_keyword_as_a_name_hides_no_reference(
    template: str, catalyst: Catalyst, keywords: list[str]
) -> None:
    wrong = []
    for word in keywords:
        text = template.format(word)
        plan = catalyst(text)
        if plan is None:
            continue
        ours = Counter(".".join(r.parts) for r in references(text).references)
        # In `SELECT ALL FROM t` Spark takes `all` for a column with an alias. To list t, too, is
        # harmless.
        if missing := _relations(plan) - ours:
            wrong.append(f"{text}: {ours}, not {missing}")
    assert not wrong, "\n".join(wrong)


STATEMENTS = [
    "INSERT INTO {} VALUES (1)",
    "INSERT INTO TABLE {} SELECT 1",
    "INSERT INTO t ({}, b) VALUES (1, 2)",
    "INSERT OVERWRITE {} PARTITION (p) SELECT 1",
    "INSERT INTO t PARTITION ({} = 1) SELECT 1",
    "UPDATE {} SET a = 1",
    "UPDATE db.{} SET a = 1",
    "UPDATE t SET {} = 1 WHERE {} = 2",
    "UPDATE t SET x.{} = 1",
    "UPDATE t AS {} SET a = 1",
    "UPDATE t SET a = x.{} WHERE b",
    "DELETE FROM {}",
    "DELETE FROM {} WHERE a = 1",
    "DELETE FROM t WHERE {} = 1",
    "DELETE FROM t AS {} WHERE a = 1",
    "DELETE FROM t WHERE a = x.{}",
    "MERGE INTO {} USING s ON a = b WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING {} ON a = b WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING s ON t.{} = s.{} WHEN MATCHED AND s.{} = 1 THEN DELETE",
    "MERGE INTO t USING s ON a WHEN MATCHED THEN UPDATE SET {} = s.{}, b = 1",
    "MERGE INTO t USING s ON a WHEN NOT MATCHED THEN INSERT ({}, b) VALUES (s.{}, 1)",
    "TRUNCATE TABLE {}",
    "DROP TABLE {}",
    "SHOW PARTITIONS {}",
    "SHOW CREATE TABLE {}",
    "SHOW COLUMNS IN {}",
    "ALTER TABLE {} RENAME TO b",
    "ALTER TABLE t ADD COLUMNS ({} INT)",
    "ALTER TABLE t REPLACE COLUMNS ({} INT)",
    "ALTER TABLE t RENAME COLUMN {} TO b",
    "ALTER TABLE t RENAME COLUMN a TO {}",
    "ALTER TABLE t CHANGE COLUMN {} b INT",
    "ALTER TABLE t CHANGE a {} INT COMMENT 'x'",
    "ALTER TABLE t ALTER COLUMN {} TYPE BIGINT",
    "ALTER TABLE t ALTER COLUMN {} COMMENT 'x', b TYPE INT",
    "CREATE TABLE {} (a INT)",
    "CREATE TABLE z ({} INT, b STRING)",
    "USE {}",
    "DROP DATABASE {}",
]


@pytest.mark.parametrize("template", STATEMENTS)
def test_every_keyword_is_a_name_wherever_spark_takes_it(
    template: str, catalyst: Catalyst, keywords: list[str], read: Read
) -> None:
    refused = []
    for word in keywords:
        text = template.replace("{}", word)
        if catalyst(text) is None:
            continue
        try:
            read(text, is_ours=lambda parts: True)
        except SqlError as error:
            refused.append(str(error))
    assert not refused, f"{len(refused)}:\n" + "\n".join(refused[:20])


KINDS = {Update: "UpdateTable", Delete: "DeleteFromTable", Merge: "MergeIntoTable"}


@pytest.fixture(scope="session")
def parser(spark: Any) -> Callable[[], Any]:
    """Catalyst's parser, behind a function: Hypothesis cannot print Java's objects."""
    return lambda: spark._jsparkSession.sessionState().sqlParser()


def _without_ids(expression: Any) -> str:
    return re.sub(r"#\d+|(?<=posparameter)\(\d+\)", "", str(expression.toString()))


def check_structure(text: str, statement: Statement, parser: Any) -> None:
    """Compare an UPDATE, DELETE or MERGE with Catalyst's node, slice by slice."""
    plan = parser.parsePlan(text)
    while plan.getClass().getSimpleName() in ("UnresolvedWith", "WithCTE"):
        plan = plan.child()
    assert plan.getClass().getSimpleName() == KINDS[type(statement)]

    def same(ours: Any, theirs: Any) -> None:
        if theirs.getClass().getSimpleName() in ("Some", "None$"):
            assert theirs.isDefined() == (ours is not None)
            theirs = theirs.get() if ours is not None else None
        if ours is not None and theirs is not None:
            span = ours.span if isinstance(ours, Default) else ours
            mine = parser.parseExpression(span.slice(text))
            assert _without_ids(mine) == _without_ids(theirs)

    def same_assignments(ours: Any, theirs: Any) -> None:
        assert len(ours) == theirs.size()
        for index, mine in enumerate(ours):
            same(mine.target.span, theirs.apply(index).key())
            same(mine.value, theirs.apply(index).value())

    if isinstance(statement, Update):
        same_assignments(statement.assignments, plan.assignments())
        same(statement.where, plan.condition())
    elif isinstance(statement, Delete):
        if statement.where is None:
            assert plan.condition().toString() == "true"
        else:
            same(statement.where, plan.condition())
    else:
        assert isinstance(statement, Merge)
        same(statement.on, plan.mergeCondition())
        theirs = [
            actions.apply(index)
            for actions in (
                plan.matchedActions(),
                plan.notMatchedActions(),
                plan.notMatchedBySourceActions(),
            )
            for index in range(actions.size())
        ]
        assert len(theirs) == len(statement.clauses)
        for clause, action in zip(statement.clauses, theirs, strict=True):
            same(clause.condition, action.condition())
            name = action.getClass().getSimpleName()
            if isinstance(clause.action, UpdateAction):
                assert name == "UpdateAction"
                same_assignments(clause.action.assignments, action.assignments())
            elif isinstance(clause.action, InsertAction):
                assert name == "InsertAction"
                assert clause.action.columns is not None
                assert len(clause.action.values) == action.assignments().size()
                for index, value in enumerate(clause.action.values):
                    same(value, action.assignments().apply(index).value())
            else:
                assert (
                    name
                    == {
                        Action.DELETE: "DeleteAction",
                        Action.UPDATE_ALL: "UpdateStarAction",
                        Action.INSERT_ALL: "InsertStarAction",
                    }[clause.action]
                )


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.one_of(sentences("update"), sentences("delete"), sentences("merge")))
def test_spark_reads_the_same_structure(
    text: str, parser: Callable[[], Any], catalyst: Catalyst
) -> None:
    try:
        statement = parse(text, is_ours=lambda parts: True)
    except SqlError:
        return
    # Spark refuses Hive's INSERT without columns, and names for a MERGE source's columns.
    if catalyst(text) is not None:
        check_structure(text, statement, parser())


@pytest.mark.parametrize(
    "case", [c for c in cases("accept") if c.file in ("change", "merge")], ids=lambda c: c.label
)
def test_spark_agrees_on_the_accepted_cases(
    case: Case, parser: Callable[[], Any], catalyst: Catalyst
) -> None:
    statement = parse(case.text, is_ours=lambda parts: True)
    if catalyst(case.text) is not None:
        check_structure(case.text, statement, parser())


@pytest.mark.parametrize("case", list(cases("reject")), ids=lambda c: c.label)
def test_what_we_reject_spark_rejects_or_we_name_it(case: Case, catalyst: Catalyst) -> None:
    """If acidsql's parser refuses a text that Spark parses, the error is listed here with its
    reason."""
    if case.header.startswith("UNSUPPORTED_FEATURE") or catalyst(case.text) is None:
        return
    assert any(words in case.header for words in _STRICTER), case.header


_STRICTER = (
    "Expected a condition",  # `DELETE FROM t WHERE` deletes everything under the alias `WHERE`
    "This row has",  # Spark refuses it in its analysis
    "continued with a backslash",
    "exclude",
    "name of a partition column",  # an empty name in back-quotes
    "number of buckets",
    "one STORED AS clause",
    "Expected the columns, AS or LIKE",  # a table without columns
    "Expected a query",
)
