-- case create_table, content, element, column_def, type, table_clause, properties, property, string, number, location: all clauses
CREATE TABLE IF NOT EXISTS db.n (id BIGINT NOT NULL COMMENT 'it''s', m MAP<STRING, ARRAY<STRUCT<a: INT, b: DECIMAL(10, 2)>>>,
  d INT DEFAULT 1 + (2) COMMENT 'd', CONSTRAINT positive CHECK (id > 0))
COMMENT 'c' PARTITIONED BY (p STRING COMMENT 'x', q INT) CLUSTERED BY (id) INTO 4 BUCKETS STORED AS ORC
LOCATION '/x' TBLPROPERTIES ('a' = 'b', c.d = 1, e = true)
-- case create_table, table_clause: the format by name
CREATE TABLE n (a INT, p STRING) USING acidsql PARTITIONED BY (p)
-- case create_table, table_clause: the format by name, as a query
CREATE OR REPLACE TABLE n USING ACIDSQL AS SELECT a, p FROM n
-- case create_table: transactional by name
CREATE TRANSACTIONAL TABLE n (a INT)
-- case create_table: Hive's MANAGED
CREATE MANAGED TABLE n (a INT)
-- case create_table, own_content, elements: Hive's TEMPORARY
CREATE TEMPORARY TABLE IF NOT EXISTS db.n (a INT) PARTITIONED BY (p STRING) STORED AS ORC TBLPROPERTIES ('a' = 'b')
-- case create_table, content: TEMPORARY, as a query
CREATE TEMPORARY TRANSACTIONAL TABLE n AS SELECT a, p FROM n
-- case create_table: TEMPORARY and OR REPLACE
CREATE OR REPLACE TEMPORARY TABLE n LIKE t
-- case create_table: Spark's OR REPLACE
CREATE OR REPLACE TABLE db.n (a INT) PARTITIONED BY (p STRING)
-- case create_table, content: columns and constraints, as a query
CREATE TABLE n (a BIGINT NOT NULL CHECK (a > 0), b STRING COMMENT 'c', CONSTRAINT k CHECK (a < 9)) PARTITIONED BY (b) AS SELECT a, b FROM t
-- case create_table, content: OR REPLACE, as a query
CREATE OR REPLACE TRANSACTIONAL TABLE n PARTITIONED BY (p) AS SELECT a, p FROM n
-- case content, table_clause: as a query, partitioned by names
CREATE TABLE n PARTITIONED BY (p) STORED AS ORC AS SELECT a, p FROM s
-- case table_clause: Parquet, of an insert-only table; the word is in any case
CREATE TABLE n (a INT) STORED AS parquet TBLPROPERTIES ('transactional_properties' = 'insert_only')
-- case content, table_clause: Parquet as a query, the properties first
CREATE TABLE n TBLPROPERTIES ('transactional' = 'true', 'transactional_properties' = 'insert_only') STORED AS PARQUET AS SELECT 1 AS a
-- case content: like an ACID table
CREATE TABLE IF NOT EXISTS n LIKE t TBLPROPERTIES ('a' = 'b')
-- case table_clause, sorted_by, sort_column: whether buckets may be sorted is for the binder to judge
CREATE TABLE n (a INT, b INT, c INT) CLUSTERED BY (a) SORTED BY (a DESC, b, c ASC) INTO 4 BUCKETS
-- case drop_table: with everything
DROP TABLE IF EXISTS db.t PURGE
-- case truncate, static_partition: one partition
TRUNCATE TABLE t PARTITION (p = 1, q = 'x')
-- case truncate: without TABLE, as in Hive
TRUNCATE t
-- case create_table, table_clause, orc_serde, orc_input, orc_output: as Hive's SHOW CREATE TABLE prints ORC
CREATE TABLE `n`(`a` int COMMENT 'x') PARTITIONED BY (`p` string) ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.orc.OrcSerde' STORED AS INPUTFORMAT 'org.apache.hadoop.hive.ql.io.orc.OrcInputFormat' OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat' TBLPROPERTIES ('transactional'='true')
-- case alter_table, add_columns: with brackets
ALTER TABLE t ADD COLUMNS (a INT COMMENT 'x', b STRUCT<c: INT>)
-- case add_columns: without brackets
ALTER TABLE t ADD COLUMN a INT
-- case add_columns, column_defs: Hive's CASCADE
ALTER TABLE t ADD COLUMNS (a INT) CASCADE
-- case add_columns: WITH VALUES, without brackets
ALTER TABLE t ADD COLUMN a INT DEFAULT 1 + 1 WITH VALUES
-- case add_columns: WITH VALUES, with brackets and CASCADE
ALTER TABLE t ADD COLUMNS (a INT NOT NULL DEFAULT 1 COMMENT 'x') CASCADE WITH VALUES
-- case replace_columns: with brackets
ALTER TABLE db.t REPLACE COLUMNS (a INT COMMENT 'x', b DECIMAL(10, 2) NOT NULL) RESTRICT
-- case rename_column: Spark's
ALTER TABLE t RENAME COLUMN a TO `b c`
-- case change_column: Hive's, with everything
ALTER TABLE t CHANGE COLUMN a b STRUCT<c: INT> NOT NULL DEFAULT 1 + 1 COMMENT 'x' CASCADE
-- case change_column: without the word COLUMN; names that are words of Spark's
ALTER TABLE t CHANGE a first INT
-- case change_column: to the name comment
ALTER TABLE t CHANGE a comment STRING
-- case alter_column, column_action: several
ALTER TABLE t ALTER COLUMN a TYPE DECIMAL(10, 2), b COMMENT 'x', c SET DEFAULT concat('x', ','), d DROP DEFAULT
-- case alter_column, column_action: CHANGE, and no word COLUMN
ALTER TABLE t CHANGE a DROP NOT NULL
-- case column_action: a type, as Spark reads it
ALTER TABLE t CHANGE COLUMN a TYPE BIGINT
-- case set_properties: two
ALTER TABLE t SET TBLPROPERTIES ('a' = 'b', 'c' = 'd')
-- case unset_properties, property_key: two, as a string and as a name
ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('a', b.c)
-- case add_partitions: two, as in Hive without a comma
ALTER TABLE t ADD IF NOT EXISTS PARTITION (p = 1, q = 'x') PARTITION (q = DATE'2024-01-02', p = NULL)
-- case set_format: whether the table has this format is not for the parser to judge
ALTER TABLE t SET FILEFORMAT orc
-- case drop_partitions: two
ALTER TABLE t DROP IF EXISTS PARTITION (p = 1), PARTITION (p = 2)
-- case rename: to another name
ALTER TABLE t RENAME TO db.n
-- case convert: a plain table
ALTER TABLE db.t CONVERT TO ACID
-- case rename_partition: two columns
ALTER TABLE t PARTITION (p = 1, q = 'x') RENAME TO PARTITION (p = 2, q = NULL)
