-- case alter_table, compact, merging: alone
ALTER TABLE t COMPACT 'major'
-- case compact, static_partition, merging: any case; all that a minor one can have
alter table db.t partition (p = 1, q = 'x') compact 'MINOR' and wait pool 'Night' with overwrite tblproperties ('a' = 'b', c.d = 1);
-- case compact, rebalancing, overwrite, sort_item: with everything
ALTER TABLE t COMPACT 'Rebalance' CLUSTERED INTO 4 BUCKETS AND WAIT POOL 'p' WITH OVERWRITE TBLPROPERTIES ('a' = 'b') ORDER BY f(a, 1) DESC NULLS LAST, `b c`, CASE WHEN d THEN 1 END
-- case compact, sort_item: columns called like the clauses
ALTER TABLE t COMPACT 'rebalance' ORDER BY pool, x.limit, clustered ASC, with, `where`
-- case compact: a comment between
ALTER TABLE `my t` /* a */ COMPACT 'rebalance' -- b
-- case explain, explained, compact: a dry run
EXPLAIN ALTER TABLE t PARTITION (p = 1) COMPACT 'minor'
-- case show, filters: alone
SHOW COMPACTIONS
-- case show: one
SHOW COMPACTIONS COMPACTIONID = 7
-- case show, filters, compaction_order, compaction_column, state: of a partition, with everything
SHOW COMPACTIONS db.t PARTITION (p = 1) POOL 'p' TYPE 'major' STATUS 'Ready_for cleaning' ORDER BY tabname DESC, `STARTTIME` ASC, highestwriteid LIMIT 10 OFFSET 20
-- case show, filters: of a database
SHOW COMPACTIONS SCHEMA d TYPE 'rebalance' LIMIT 5, 10;
-- case show: of a table called database
SHOW COMPACTIONS database TYPE 'minor'
-- case show: of a database called type
SHOW COMPACTIONS DATABASE type TYPE 'minor'
-- case show: of tables called like filters
SHOW COMPACTIONS status STATUS 'failed'
-- case abort: compactions
ABORT COMPACTIONS 1 2 3
-- case compaction_order, compaction_column: the name of a column as a string
SHOW COMPACTIONS ORDER BY 'tabname' DESC, partname
