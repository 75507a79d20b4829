-- case start_transaction: alone
START TRANSACTION
-- case start_transaction, modes, mode: with modes
START TRANSACTION ISOLATION LEVEL SNAPSHOT, READ WRITE;
-- case start_transaction: begin
BEGIN
-- case start_transaction: a word more
BEGIN WORK
-- case start_transaction, mode: read only
begin transaction read only
-- case start_transaction, mode: no word between
BEGIN ISOLATION LEVEL SNAPSHOT
-- case commit: alone
COMMIT
-- case commit: with everything
COMMIT WORK AND NO CHAIN
-- case rollback: alone
ROLLBACK /* all of it */
-- case rollback: no chain
ROLLBACK TRANSACTION AND NO CHAIN
-- case rollback: to a savepoint
ROLLBACK WORK TO SAVEPOINT `my point`
-- case rollback: to a savepoint called savepoint
ROLLBACK TO savepoint
-- case savepoint: a name
SAVEPOINT before_merge
-- case savepoint: called as the word
SAVEPOINT savepoint
-- case release: with the word
RELEASE SAVEPOINT s
-- case release: without it
RELEASE s
-- case lock: a table
LOCK TABLE db.t EXCLUSIVE
-- case lock, static_partition: a partition
LOCK TABLE t PARTITION (p = 1, q = 'x') SHARED
-- case lock: a database
LOCK SCHEMA d SHARED
-- case unlock: a table
UNLOCK TABLE db.t
-- case unlock, static_partition: a partition
UNLOCK TABLE t PARTITION (p = 1, q = 'x')
-- case unlock: a table that is gone
UNLOCK TABLE nowhere.nothing
-- case unlock: a database
UNLOCK DATABASE d
-- case show: locks
SHOW LOCKS
-- case show: locks, extended
SHOW LOCKS EXTENDED
-- case show: locks of a table
SHOW LOCKS db.t EXTENDED
-- case show, partition: locks of a partition
SHOW LOCKS t PARTITION (p = 1)
-- case show: locks of a database
SHOW LOCKS DATABASE d
-- case show: locks of tables with names like the words
SHOW LOCKS extended EXTENDED
-- case show: locks of a table called database
SHOW LOCKS database
-- case abort: three
ABORT TRANSACTIONS 1 2 3
-- case set_option, setting, rest: raw
SET hive.txn.timeout=60s
-- case set_option, rest: in quotes
SET `hive.txn.timeout` = '60 s' ;
-- case set_option: shown
set hive.txn.timeout
-- case reset_option: a setting
RESET hive.txn.timeout;
