-- case statement, create_database: with everything
CREATE DATABASE IF NOT EXISTS d COMMENT 'x' LOCATION '/y'
-- case create_database, dbproperties, properties: properties before the comment
CREATE SCHEMA d WITH DBPROPERTIES ('a' = 'b', c.d = 1) COMMENT 'x'
-- case statement, alter_database: properties
ALTER DATABASE d SET DBPROPERTIES ('a' = 'b')
-- case alter_database, dbproperties: in Spark's words
ALTER NAMESPACE spark_catalog.d SET PROPERTIES (a = true)
-- case alter_database: without properties
ALTER SCHEMA d UNSET DBPROPERTIES ('a', b.c)
-- case statement, describe_database: with its properties
DESCRIBE DATABASE EXTENDED d
-- case describe_database: one called extended
DESC SCHEMA extended
-- case drop_database: cascade
DROP SCHEMA IF EXISTS d CASCADE
-- case use: with and without the word
USE DATABASE d
-- case show, pattern: databases
SHOW SCHEMAS LIKE 'a*'
-- case show: tables
SHOW TABLES IN d 'x|y'
-- case show: partitions
SHOW PARTITIONS t PARTITION (p = 1)
-- case show: create table
SHOW CREATE TABLE t
-- case show: properties
SHOW TBLPROPERTIES t ('a.b')
-- case show: columns
SHOW COLUMNS FROM t
-- case show: transactions
SHOW TRANSACTIONS
-- case show: streams
SHOW STREAMS
-- case describe: extended
DESCRIBE TABLE EXTENDED db.t
-- case describe: the versions
DESC HISTORY db.t LIMIT 5
-- case describe: a column
DESC EXTENDED t `a.b`
-- case analyze: the files alone
ANALYZE TABLE db.t COMPUTE STATISTICS NOSCAN
-- case analyze, counted: some columns
ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a, `b c`
-- case counted: all columns, in Hive's words
ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS
-- case analyze: all columns, in Spark's words
ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS
-- case analyze: a database
ANALYZE TABLES IN db COMPUTE STATISTICS
-- case explain, explained: of an update
EXPLAIN FORMATTED UPDATE t SET a = 1
-- case load: into a table
LOAD DATA INPATH '/x/part-*' INTO TABLE t
-- case load, static_partition: from the driver's own disk, replacing a partition
LOAD DATA LOCAL INPATH '/x' OVERWRITE INTO TABLE db.t PARTITION (p = 1, q = 'x')
