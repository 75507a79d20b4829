-- case element, new_column, column_constraint, check, strict, loose: constraints behind columns
CREATE TABLE n (a INT NOT NULL ENABLE CHECK (a > 0) ENFORCED PRIMARY KEY DISABLE NOVALIDATE RELY,
  b INT CONSTRAINT nn NOT NULL NOVALIDATE RELY CONSTRAINT d DEFAULT 1 ENABLE CONSTRAINT u UNIQUE NOT ENFORCED,
  c STRING REFERENCES db.t (x) DISABLE NOVALIDATE NORELY COMMENT 'c' CONSTRAINT x CHECK (length(c) IN (1, 2)) CHECK (true),
  d INT NOT NULL DISABLE NOVALIDATE) PARTITIONED BY (p INT CHECK (p > 0) NOT NULL)
-- case table_constraint, key: constraints of the table, before and behind columns
CREATE TABLE n (CHECK (a > b) ENABLE VALIDATE RELY, a INT, CONSTRAINT `a b` PRIMARY KEY (a, b) NOT ENFORCED, b INT,
  UNIQUE (b), FOREIGN KEY (a, b) REFERENCES t (x, y) RELY DISABLE NOVALIDATE, CONSTRAINT f FOREIGN KEY (a) REFERENCES t)
-- case element: columns with the names of constraints
CREATE TABLE n (check INT, unique STRING, primary INT, constraint INT, foreign INT, enforced INT)
-- case add_constraint, table_constraint: with a name
ALTER TABLE db.t ADD CONSTRAINT c CHECK (a > 0 AND "x" <> b) NOT ENFORCED
-- case add_constraint: without a name
ALTER TABLE t ADD CHECK (a > 0) NOVALIDATE
-- case add_constraint, key: a key
ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (a, b) DISABLE NOVALIDATE RELY
-- case drop_constraint: Hive's
ALTER TABLE t DROP CONSTRAINT c
-- case drop_constraint: Spark's
ALTER TABLE t DROP CONSTRAINT IF EXISTS `a b` CASCADE
-- case column_action: Spark's
ALTER TABLE t ALTER COLUMN a SET NOT NULL, b DROP NOT NULL
-- case change_column, column_def: Hive's
ALTER TABLE t CHANGE COLUMN a a INT CONSTRAINT nn NOT NULL ENABLE
