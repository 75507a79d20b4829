-- case insert, source, values, row, value, table: the simplest statement
INSERT INTO t VALUES (1, 'a'), (2, DEFAULT)
-- case destination, columns, column: columns are named
INSERT INTO TABLE db.t (a, `b c`) VALUES (1, 2)
-- case partition, partition_item, name, expression: static and dynamic partitions
INSERT INTO t PARTITION (p = DATE '2024-01-01', q) SELECT a, q FROM s
-- case destination: columns behind the partition
INSERT INTO t PARTITION (p = 1) (a, b) VALUES (1, 2)
-- case destination: columns before the partition
INSERT INTO t (a, b) PARTITION (p = 1) VALUES (1, 2)
-- case destination: by name
INSERT INTO t BY NAME SELECT 1 AS a
-- case insert: overwrite, in brackets
INSERT OVERWRITE TABLE t (SELECT * FROM s) UNION ALL SELECT * FROM t2
-- case query: every form of query
INSERT INTO t TABLE s
-- case query: FROM first
INSERT INTO t FROM s SELECT a
-- case query: VALUES with an alias is a query
INSERT INTO t VALUES (1), (2) AS v (a)
-- case row: rows without brackets
INSERT INTO t VALUES 1, DEFAULT, 2 + 3
-- case ctes, cte: with a leading WITH
WITH a AS (SELECT 1), b (x) AS (SELECT * FROM a) INSERT INTO t SELECT * FROM b
-- case query: with an inner WITH
INSERT INTO t WITH a AS (SELECT 1) SELECT * FROM a
-- case value: parameters stay in the text
INSERT INTO t VALUES (:a, ?, map('k', 1)['k'], array(1, 2))
-- case insert: comments and a semicolon, everywhere
/* a; */ INSERT -- b;
INTO t /* c */ VALUES (1 /* ) */, ')') ; -- d
-- case multi_insert, branch, relation, select: one source, two targets
WITH c AS (SELECT 1) FROM c JOIN s INSERT INTO t SELECT a WHERE b INSERT OVERWRITE t2 PARTITION (p) (x) SELECT c, p
-- case insert, returning: behind VALUES, with DEFAULT
INSERT INTO t VALUES (1, DEFAULT), (2, 'x') RETURNING id, row__id
-- case insert, returning: RETURNING as an alias before the clause
INSERT INTO t SELECT a returning FROM s WHERE b RETURNING a
-- case insert, replacing: REPLACE WHERE with a condition that has words of queries in brackets
INSERT INTO t REPLACE WHERE day = '2024-01-01' AND extract(year FROM d) IS DISTINCT FROM 5 SELECT * FROM s
-- case insert, replacing, columns: REPLACE USING after BY NAME
WITH c AS (SELECT 1 AS a) INSERT INTO TABLE db.t BY NAME REPLACE USING (a, `b c`) WITH d AS (TABLE c) SELECT a FROM d
-- case insert, replacing, values: REPLACE WHERE before VALUES
INSERT INTO t REPLACE WHERE a = 1 VALUES (1, DEFAULT)
-- case insert, replacing, evolution: new columns come from the query, by name
INSERT WITH SCHEMA EVOLUTION OVERWRITE TABLE t PARTITION (p = 1) BY NAME SELECT 1 AS a
-- case insert, evolution: with REPLACE
INSERT WITH SCHEMA EVOLUTION INTO t BY NAME REPLACE USING (a) SELECT 1 AS a
