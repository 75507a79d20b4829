-- case INVALID_COMPACTION_TYPE at 22-28: There is no compaction of type 'full' (Hive 10282): say 'major', 'minor' or 'rebalance'.
ALTER TABLE t COMPACT 'full'
-- case INVALID_COMPACTION_TYPE at 22-41: type 'abort_txn_cleanup' (Hive 10282)
ALTER TABLE t COMPACT 'abort_txn_cleanup'
-- case PARSE_SYNTAX_ERROR at 22-27: Expected a type of compaction in quotes
ALTER TABLE t COMPACT major
-- case PARSE_SYNTAX_ERROR at 21-21: Expected a type of compaction in quotes
ALTER TABLE t COMPACT
-- case PARSE_SYNTAX_ERROR at 26-27: a value for 'p'
ALTER TABLE t PARTITION (p) COMPACT 'major'
-- case UNSUPPORTED_FEATURE at 30-44: CLUSTERED INTO is supported by COMPACT 'rebalance' only
ALTER TABLE t COMPACT 'major' CLUSTERED INTO 4 BUCKETS
-- case UNSUPPORTED_FEATURE at 39-47: ORDER BY is supported by COMPACT 'rebalance' only
ALTER TABLE t COMPACT 'minor' AND WAIT ORDER BY a
-- case PARSE_SYNTAX_ERROR at 49-50: number of buckets from 1 to 4096
ALTER TABLE t COMPACT 'rebalance' CLUSTERED INTO 0 BUCKETS
-- case PARSE_SYNTAX_ERROR at 50-50: Expected BUCKETS
ALTER TABLE t COMPACT 'rebalance' CLUSTERED INTO 4
-- case PARSE_SYNTAX_ERROR at 34-38: Expected WAIT
ALTER TABLE t COMPACT 'major' AND POOL 'p'
-- case PARSE_SYNTAX_ERROR at 35-36: Expected the name of a pool in quotes
ALTER TABLE t COMPACT 'major' POOL p
-- case PARSE_SYNTAX_ERROR at 35-37: Expected the name of a pool in quotes
ALTER TABLE t COMPACT 'major' POOL ''
-- case PARSE_SYNTAX_ERROR at 35-48: Expected OVERWRITE
ALTER TABLE t COMPACT 'major' WITH TBLPROPERTIES ('a' = 'b')
-- case PARSE_SYNTAX_ERROR at 39-42: come once each, in this order: CLUSTERED INTO … BUCKETS, AND WAIT, POOL, WITH OVERWRITE TBLPROPERTIES, ORDER BY.
ALTER TABLE t COMPACT 'major' POOL 'p' AND WAIT
-- case PARSE_SYNTAX_ERROR at 43-52: CLUSTERED stands in the wrong place
ALTER TABLE t COMPACT 'rebalance' AND WAIT CLUSTERED INTO 4 BUCKETS
-- case PARSE_SYNTAX_ERROR at 53-57: POOL stands in the wrong place
ALTER TABLE t COMPACT 'rebalance' ORDER BY a, b DESC POOL 'p'
-- case PARSE_SYNTAX_ERROR at 45-48: AND stands in the wrong place
ALTER TABLE t COMPACT 'rebalance' ORDER BY a AND WAIT
-- case PARSE_SYNTAX_ERROR at 45-49: WITH stands in the wrong place
ALTER TABLE t COMPACT 'rebalance' ORDER BY a WITH OVERWRITE TBLPROPERTIES ('a' = 'b')
-- case PARSE_SYNTAX_ERROR at 39-43: POOL stands in the wrong place: the clauses of COMPACT come once each
ALTER TABLE t COMPACT 'major' POOL 'p' POOL 'q'
-- case PARSE_SYNTAX_ERROR at 42-42: Expected an expression
ALTER TABLE t COMPACT 'rebalance' ORDER BY
-- case PARSE_SYNTAX_ERROR at 45-45: Expected an expression
ALTER TABLE t COMPACT 'rebalance' ORDER BY a,
-- case UNSUPPORTED_FEATURE at 47-52: LIMIT is not supported in COMPACT's ORDER BY
ALTER TABLE t COMPACT 'rebalance' ORDER BY set LIMIT 1
-- case UNSUPPORTED_FEATURE at 45-50: WHERE is not supported in COMPACT's ORDER BY
ALTER TABLE t COMPACT 'rebalance' ORDER BY a WHERE p = 1
-- case PARSE_SYNTAX_ERROR at 59-60: Expected AND WAIT, POOL, WITH OVERWRITE TBLPROPERTIES, ORDER BY or the end of the statement
ALTER TABLE t COMPACT 'rebalance' CLUSTERED INTO 2 BUCKETS x
-- case PARSE_SYNTAX_ERROR at 75-80: Expected ORDER BY or the end of the statement
ALTER TABLE t COMPACT 'rebalance' WITH OVERWRITE TBLPROPERTIES ('a' = 'b') WHERE p = 1
-- case PARSE_SYNTAX_ERROR at 30-31: Expected AND WAIT, POOL, WITH OVERWRITE TBLPROPERTIES or the end of the statement
ALTER TABLE t COMPACT 'major' x
-- case PARSE_SYNTAX_ERROR at 13-13: RENAME TO or COMPACT
ALTER TABLE t
-- case PARSE_SYNTAX_ERROR at 19-24: Expected POOL, TYPE, STATUS, ORDER BY, LIMIT or the end of the statement
SHOW COMPACTIONS t WHERE a
-- case PARSE_SYNTAX_ERROR at 33-37: come once each, in this order: POOL, TYPE, STATUS, ORDER BY, LIMIT.
SHOW COMPACTIONS STATUS 'failed' TYPE 'major'
-- case PARSE_SYNTAX_ERROR at 25-30: LIMIT stands in the wrong place
SHOW COMPACTIONS LIMIT 1 LIMIT 2
-- case PARSE_SYNTAX_ERROR at 34-39: as a number needs no filters
SHOW COMPACTIONS COMPACTIONID = 7 LIMIT 1
-- case PARSE_SYNTAX_ERROR at 32-33: whole number
SHOW COMPACTIONS COMPACTIONID = x
-- case PARSE_SYNTAX_ERROR at 28-37: Expected POOL, TYPE
SHOW COMPACTIONS DATABASE d PARTITION (p = 1)
-- case PARSE_SYNTAX_ERROR at 31-32: a value for 'p'
SHOW COMPACTIONS t PARTITION (p)
-- case INVALID_COMPACTION_TYPE at 22-27: 'major', 'minor' or 'rebalance'
SHOW COMPACTIONS TYPE 'any'
-- case INVALID_COMPACTION_STATE at 24-35: No compaction has the state 'attempted': say 'initiated', 'working', 'ready for cleaning', 'succeeded', 'failed', 'refused', 'did not initiate' or 'aborted'.
SHOW COMPACTIONS STATUS 'attempted'
-- case UNRESOLVED_COLUMN.WITH_SUGGESTION at 34-39: SHOW COMPACTIONS cannot be ordered by 'state', only by COMPACTIONID, DBNAME
SHOW COMPACTIONS ORDER BY dbname, state
-- case PARSE_SYNTAX_ERROR at 33-38: Expected LIMIT or the end of the statement
SHOW COMPACTIONS ORDER BY dbname NULLS FIRST
-- case PARSE_SYNTAX_ERROR at 26-27: the name of a column
SHOW COMPACTIONS ORDER BY 1
-- case PARSE_SYNTAX_ERROR at 31-31: whole number
SHOW COMPACTIONS LIMIT 1 OFFSET
-- case PARSE_SYNTAX_ERROR at 25-25: whole number
SHOW COMPACTIONS LIMIT 1,
-- case PARSE_SYNTAX_ERROR at 6-7: Expected TRANSACTIONS or COMPACTIONS
ABORT 1
-- case PARSE_SYNTAX_ERROR at 19-20: blanks separate
ABORT COMPACTIONS 1, 2
-- case PARSE_SYNTAX_ERROR at 17-17: whole number
ABORT COMPACTIONS
-- case PARSE_SYNTAX_ERROR at 17-26: Expected POOL, TYPE
SHOW COMPACTIONS PARTITION (p = 1)
