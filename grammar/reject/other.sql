-- case PARSE_SYNTAX_ERROR at 17-18: Expected a path in quotes
LOAD DATA INPATH /x INTO TABLE t
-- case PARSE_SYNTAX_ERROR at 35-36: Expected PARTITION or the end
LOAD DATA INPATH '/x' INTO TABLE t x
-- case PARSE_SYNTAX_ERROR at 47-48: a value for 'p'
LOAD DATA INPATH '/x' INTO TABLE t PARTITION (p)
-- case UNSUPPORTED_FEATURE at 35-46: INPUTFORMAT is not supported
LOAD DATA INPATH '/x' INTO TABLE t INPUTFORMAT 'x' SERDE 'y'
-- case PARSE_SYNTAX_ERROR at 0-13: Expected a statement
/* nothing */
-- case UNSUPPORTED_FEATURE at 11-12: single column
DESCRIBE t a
-- case PARSE_SYNTAX_ERROR at 25-26: Expected a whole number
DESCRIBE HISTORY t LIMIT x
-- case PARSE_SYNTAX_ERROR at 19-24: Expected LIMIT or the end
DESCRIBE HISTORY t ORDER BY 1
-- case UNSUPPORTED_FEATURE at 20-22: AS SERDE
SHOW CREATE TABLE t AS SERDE
-- case PARSE_SYNTAX_ERROR at 18-19: Expected the end of the statement
SHOW TRANSACTIONS x
-- case PARSE_SYNTAX_ERROR at 13-14: Expected the end of the statement
SHOW STREAMS x
-- case PARSE_SYNTAX_ERROR at 6-7: Expected the end of the statement
USE d e
-- case UNSUPPORTED_FEATURE at 7-9: Dollar-quoted
SELECT $$a$$
-- case PARSE_SYNTAX_ERROR at 19-20: continued with a backslash
DELETE FROM t -- x \
WHERE a = 1
