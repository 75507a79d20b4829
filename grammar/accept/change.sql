-- case update, assignments, assignment, value, alias: aliases and DEFAULT
UPDATE t AS x SET x.a = x.a + 1, b = DEFAULT, c = CASE WHEN d THEN 1 ELSE 2 END WHERE x.id = 1
-- case update: a comparison as a value, nested fields, no WHERE
UPDATE t SET a = b = c, addr.city = 'x'
-- case assignment: fields of structs
UPDATE t AS x SET x.s.f = x.s.g, `a.b`.c.`d e` = DEFAULT
-- case update, partners: rows with partners, and a FROM that is part of an operator
UPDATE t x SET a = s.b, c = s.b IS DISTINCT FROM x.c FROM s WHERE x.id = s.id AND s.b > 0
-- case delete, merge_source: rows with partners in a query
DELETE FROM t USING (SELECT id FROM s) AS u WHERE t.id = u.id
-- case update, ctes: subqueries
WITH c AS (SELECT 1 AS id) UPDATE t SET a = (SELECT max(b) FROM s WHERE s.id = t.id) WHERE id IN (SELECT id FROM c)
-- case update: keywords as columns
UPDATE t SET where = 1, set = 2, `from` = 3 WHERE where = 1 AND limit IS NULL
-- case delete: without condition
DELETE FROM t
-- case delete, alias: correlated
DELETE FROM db.t x WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.id = x.id ORDER BY 1 LIMIT 1)
-- case delete: IS DISTINCT FROM is no FROM clause
DELETE FROM t WHERE a IS DISTINCT FROM b AND extract(YEAR FROM c) = 2024
-- case restore: a version
RESTORE TABLE db.t TO VERSION AS OF 3
-- case restore: a time, in Delta Lake's short form
RESTORE t TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY
-- case revert: rows that were changed again stay
REVERT TRANSACTION 17 SKIP CONFLICTS
-- case explain: what would change
EXPLAIN CHANGES UPDATE t SET a = a + 1 WHERE b
-- case update, returning, returned: old and new values
UPDATE t AS x SET a = a + 1 WHERE b RETURNING old.a, new.a AS now, x.*, left(c, 3), row__id
-- case delete, returning, returned, renamed: other names for the rows
DELETE FROM t RETURNING WITH (OLD AS o, NEW AS n) o.*, * EXCEPT (a)
-- case delete: RETURNING as an alias
DELETE FROM t returning WHERE returning.a = 1
