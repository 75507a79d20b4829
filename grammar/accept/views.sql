-- case statement, create_view, view_definition, view_column: with everything
CREATE VIEW IF NOT EXISTS db.v (a COMMENT 'x', `b c`) COMMENT 'c' TBLPROPERTIES ('a' = 'b') AS WITH x AS (SELECT * FROM t) SELECT * FROM x
-- case create_view, view_definition: the clauses in another order
CREATE OR REPLACE VIEW v TBLPROPERTIES (a.b = 1) COMMENT 'c' AS (SELECT a FROM t) UNION ALL TABLE t
-- case create_view: of the changes of a table
CREATE VIEW v AS SELECT * FROM table_changes('t', 1)
-- case create_view, view_definition: ours without a table of ours
CREATE VIEW v (a) COMMENT 'c' TBLPROPERTIES ('transactional' = 'true', 'k' = 'v') AS SELECT 1
-- case alter_view: another query
ALTER VIEW db.t AS VALUES (1)
-- case alter_view: another name
ALTER VIEW t RENAME TO db.w
-- case drop_view: if it is there
DROP VIEW IF EXISTS db.t
-- case show, pattern: views
SHOW VIEWS FROM d LIKE 'x*'
