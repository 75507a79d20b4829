-- case UNSUPPORTED_FEATURE at 5-10: SHOW LOCKS is not built yet
SHOW LOCKS t
-- case UNSUPPORTED_FEATURE at 5-16: SHOW COMPACTIONS is not built yet
SHOW COMPACTIONS
-- case UNSUPPORTED_FEATURE at 6-17: ABORT COMPACTIONS is not built yet
ABORT COMPACTIONS 1
-- case PARSE_SYNTAX_ERROR at 20-21: blanks separate
ABORT TRANSACTIONS 1, 2
-- case PARSE_SYNTAX_ERROR at 18-18: whole number
ABORT TRANSACTIONS
-- case UNSUPPORTED_FEATURE at 0-5: BEGIN is not built yet
BEGIN
-- case UNSUPPORTED_FEATURE at 0-5: START TRANSACTION is not built yet
START TRANSACTION READ ONLY
-- case UNSUPPORTED_FEATURE at 0-6: COMMIT is not built yet
COMMIT
-- case UNSUPPORTED_FEATURE at 0-8: ROLLBACK is not built yet
ROLLBACK TO SAVEPOINT x
-- case UNSUPPORTED_FEATURE at 0-9: SAVEPOINT is not built yet
SAVEPOINT x
-- case UNSUPPORTED_FEATURE at 0-4: LOCK TABLE is not built yet
LOCK TABLE t SHARED
-- case UNSUPPORTED_FEATURE at 0-4: LOAD DATA into an ACID table
LOAD DATA INPATH '/x' INTO TABLE t
-- case UNSUPPORTED_FEATURE at 0-5: script
BEGIN SELECT 1; END
-- case PARSE_SYNTAX_ERROR at 0-13: Expected a statement
/* nothing */
-- case UNSUPPORTED_FEATURE at 11-12: single column
DESCRIBE t a
-- case UNSUPPORTED_FEATURE at 20-22: AS SERDE
SHOW CREATE TABLE t AS SERDE
-- case PARSE_SYNTAX_ERROR at 18-19: Expected the end of the statement
SHOW TRANSACTIONS x
-- case PARSE_SYNTAX_ERROR at 6-7: Expected the end of the statement
USE d e
-- case UNSUPPORTED_FEATURE at 7-9: Dollar-quoted
SELECT $$a$$
-- case PARSE_SYNTAX_ERROR at 19-20: continued with a backslash
DELETE FROM t -- x \
WHERE a = 1
