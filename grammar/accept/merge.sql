-- case merge, merge_source, when, matched, not_matched, by_source, change, remove, add: all clauses
MERGE INTO t AS x USING s AS y ON x.id = y.id AND x.p > CASE WHEN y.a THEN 1 END
WHEN MATCHED AND y.op = 'D' THEN DELETE
WHEN MATCHED THEN UPDATE SET x.a = y.a, b = DEFAULT
WHEN NOT MATCHED BY TARGET AND y.a > 0 THEN INSERT (id, a) VALUES (y.id, DEFAULT)
WHEN NOT MATCHED THEN INSERT *
WHEN NOT MATCHED BY SOURCE AND x.a IS NULL THEN DELETE
WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = NULL
-- case change, merge_source: everything from the source, which is a query
MERGE INTO t USING (SELECT id, max(a) AS a FROM s GROUP BY id) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET *
-- case add: Hive's INSERT without columns
MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'a')
-- case merge_source, frame: a DataFrame
MERGE INTO t USING {df} ON t.id = df.id WHEN MATCHED THEN DELETE
-- case merge_source, columns: VALUES with names
MERGE INTO t USING (VALUES (1, 'a')) AS u (id, a) ON t.id = u.id WHEN MATCHED THEN DELETE
-- case merge, ctes: a common table expression as source
WITH c AS (SELECT 1 AS id) MERGE INTO t USING c ON t.id = c.id WHEN MATCHED THEN DELETE
-- case merge, returning: the action
MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT * RETURNING merge_action(), t.*
-- case merge, evolution: the target gets the columns of the source
WITH c AS (SELECT 1 AS a) MERGE WITH SCHEMA EVOLUTION INTO t USING c ON t.a = c.a WHEN MATCHED THEN UPDATE SET *
-- case assignment, by_source: fields of structs
MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET t.r.f = s.f, r.g.h = 1 WHEN NOT MATCHED BY SOURCE THEN UPDATE SET r.f = NULL
