-- case PARSE_SYNTAX_ERROR at 27-27: Expected WHERE, which says
UPDATE t SET a = s.b FROM s
-- case UNSUPPORTED_FEATURE at 31-35: The FROM of UPDATE comes between SET and WHERE
UPDATE t SET a = 1 WHERE b = c FROM s
-- case UNSUPPORTED_FEATURE at 28-32: A join as UPDATE's source
UPDATE t SET a = s.b FROM s JOIN u ON true WHERE a = b
-- case UNSUPPORTED_FEATURE at 27-32: ORDER BY
UPDATE t SET a = 1 WHERE b ORDER BY c
-- case UNSUPPORTED_FEATURE at 19-24: LIMIT
UPDATE t SET a = 1 LIMIT 1
-- case UNSUPPORTED_FEATURE at 31-35: RETURNING … FROM
UPDATE t SET a = 1 RETURNING a FROM t
-- case UNSUPPORTED_FEATURE at 31-36: RETURNING … UNION
UPDATE t SET a = 1 RETURNING a UNION SELECT 1
-- case UNSUPPORTED_FEATURE at 24-32: RETURNING DISTINCT
DELETE FROM t RETURNING DISTINCT a
-- case PARSE_SYNTAX_ERROR at 26-26: Expected a column
DELETE FROM t RETURNING a,
-- case PARSE_SYNTAX_ERROR at 26-27: Expected ','
DELETE FROM t RETURNING * b
-- case PARSE_SYNTAX_ERROR at 30-33: Expected OLD or NEW
DELETE FROM t RETURNING WITH (OUR AS o) a
-- case UNSUPPORTED_FEATURE at 9-13: More than one table
UPDATE t JOIN s ON a = b SET c = 1
-- case UNSUPPORTED_FEATURE at 8-9: More than one table
UPDATE t, s SET c = 1
-- case PARSE_SYNTAX_ERROR at 9-14: Expected SET
UPDATE t WHERE a = 1
-- case PARSE_SYNTAX_ERROR at 12-12: name of a column
UPDATE t SET
-- case PARSE_SYNTAX_ERROR at 14-14: Expected '='
UPDATE t SET a
-- case PARSE_SYNTAX_ERROR at 15-20: Expected '='
UPDATE t SET a WHERE b = 1
-- case PARSE_SYNTAX_ERROR at 14-15: Expected '='
UPDATE t SET a, b = 1
-- case PARSE_SYNTAX_ERROR at 15-16: Expected '='
UPDATE t SET a + 1 = 2
-- case PARSE_SYNTAX_ERROR at 14-15: Expected '='
UPDATE t SET f(a) = 1
-- case UNSUPPORTED_FEATURE at 13-19: write SET a = …, b = …
UPDATE t SET (a, b) = (1, 2)
-- case PARSE_SYNTAX_ERROR at 13-14: name of a column
UPDATE t SET 1 = 2
-- case PARSE_SYNTAX_ERROR at 19-19: name of a column
UPDATE t SET a = 1,
-- case PARSE_SYNTAX_ERROR at 17-22: Expected a value
UPDATE t SET a = WHERE b = 1
-- case PARSE_SYNTAX_ERROR at 24-24: Expected a condition
UPDATE t SET a = 1 WHERE
-- case PARSE_SYNTAX_ERROR at 31-36: Expected one WHERE
UPDATE t SET a = 1 WHERE b = 1 WHERE c = 1
-- case UNSUPPORTED_FEATURE at 14-15: element of an array or a map
UPDATE t SET m['k'] = 1
-- case UNSUPPORTED_FEATURE at 7-17: IDENTIFIER
UPDATE IDENTIFIER(:x) SET a = 1
-- case UNSUPPORTED_FEATURE at 14-19: DELETE … LIMIT
DELETE FROM t LIMIT 1
-- case UNSUPPORTED_FEATURE at 26-31: DELETE … LIMIT
DELETE FROM t WHERE a = 1 LIMIT 1
-- case UNSUPPORTED_FEATURE at 16-21: DELETE … ORDER BY
DELETE FROM t x ORDER BY a LIMIT 1
-- case UNSUPPORTED_FEATURE at 21-22: A join as DELETE's source
DELETE FROM t USING s, u WHERE t.id = s.id
-- case UNSUPPORTED_FEATURE at 14-18: More than one table
DELETE FROM t JOIN s ON a = b
-- case UNSUPPORTED_FEATURE at 13-14: More than one table
DELETE FROM t, s
-- case PARSE_SYNTAX_ERROR at 7-8: Expected FROM
DELETE t WHERE a = 1
-- case PARSE_SYNTAX_ERROR at 19-19: Expected a condition
DELETE FROM t WHERE
-- case PARSE_SYNTAX_ERROR at 12-13: name of a table
DELETE FROM (SELECT 1)
-- case PARSE_SYNTAX_ERROR at 16-17: Expected WHERE or the end
DELETE FROM t x y WHERE a
-- case PARSE_SYNTAX_ERROR at 15-19: a second one
DELETE FROM t; DROP TABLE t
-- case PARSE_SYNTAX_ERROR at 13-14: Expected VERSION AS OF or TIMESTAMP AS OF
RESTORE t TO 3
-- case PARSE_SYNTAX_ERROR at 24-25: Expected the number of a version
RESTORE t VERSION AS OF x
-- case PARSE_SYNTAX_ERROR at 19-20: Expected a whole number
REVERT TRANSACTION t
-- case PARSE_SYNTAX_ERROR at 21-25: Expected SKIP CONFLICTS or the end of the statement
REVERT TRANSACTION 1 SKIP
-- case PARSE_SYNTAX_ERROR at 16-22: Expected INSERT, UPDATE, DELETE
EXPLAIN CHANGES SELECT 1
