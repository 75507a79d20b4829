-- case auto_cdc, cdc_source: all clauses
AUTO CDC INTO t FROM sell_stg AS s KEYS (sell_id, store) APPLY AS DELETE WHEN s.op_code = 'D'
SEQUENCE BY struct(change_ts, batch) COLUMNS * EXCEPT (op_code) STORED AS SCD TYPE 1
-- case auto_cdc: everything is declared with the table
AUTO CDC INTO t FROM s
-- case auto_cdc: the older words, and a query
APPLY CHANGES INTO t FROM (SELECT * FROM s WHERE a > 1) x KEYS (id) SEQUENCE BY n COLUMNS (id, a)
-- case cdc_source: an alias that is a word of the grammar
AUTO CDC INTO t FROM s keys KEYS (id) SEQUENCE BY keys.sequence
-- case auto_cdc: a column that is called as a clause
AUTO CDC INTO t FROM s KEYS (id) APPLY AS DELETE WHEN sequence = 1 OR s.apply IS NULL SEQUENCE BY sequence
-- case explained: what it will do
EXPLAIN AUTO CDC INTO t FROM s KEYS (id) SEQUENCE BY n
-- case explain: the rows that it would change
EXPLAIN CHANGES AUTO CDC INTO t FROM s KEYS (id) SEQUENCE BY n
-- case auto_cdc: a record deletes all rows
AUTO CDC INTO t FROM s KEYS (id) APPLY AS DELETE WHEN op = 'd' APPLY AS TRUNCATE WHEN op = 't' SEQUENCE BY n
-- case auto_cdc: a NULL leaves a column as it is
AUTO CDC INTO t FROM s KEYS (id) IGNORE NULL UPDATES SEQUENCE BY n
-- case auto_cdc, choice, names: a NULL leaves some columns as they are
AUTO CDC INTO t FROM s KEYS (id) IGNORE NULL UPDATES ON (a) SEQUENCE BY n
-- case auto_cdc, choice: a NULL leaves all columns but one as they are
AUTO CDC INTO t FROM s IGNORE NULL UPDATES ON * EXCEPT (a) COLUMNS (id, a)
-- case auto_cdc, choice: all versions of each key
AUTO CDC INTO t FROM s KEYS (id) SEQUENCE BY n STORED AS SCD TYPE 2 TRACK HISTORY ON (a)
-- case auto_cdc: all versions of each key, by all columns but one
AUTO CDC INTO t FROM s KEYS (id) SEQUENCE BY n STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (a)
