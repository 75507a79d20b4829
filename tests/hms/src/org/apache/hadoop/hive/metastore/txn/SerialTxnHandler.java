package org.apache.hadoop.hive.metastore.txn;

import org.apache.hadoop.hive.metastore.api.CheckLockRequest;
import org.apache.hadoop.hive.metastore.api.LockResponse;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.NoSuchLockException;
import org.apache.hadoop.hive.metastore.api.NoSuchTxnException;
import org.apache.hadoop.hive.metastore.api.TxnAbortedException;

/**
 * Hive's own, without a deadlock of Hive 4.0.1 over Derby. There, {@code checkLock} writes the heartbeat into TXNS, and
 * then waits for a lock of the process. {@code commitTxn} has that lock, and waits for the row in TXNS. Derby sees only
 * one half of the circle. Here {@code checkLock} takes the lock of the process first.
 */
public class SerialTxnHandler extends CompactionTxnHandler {

  @Override
  public LockResponse checkLock(CheckLockRequest request)
      throws NoSuchTxnException, NoSuchLockException, TxnAbortedException, MetaException {
    dbProduct.lockInternal();
    try {
      return super.checkLock(request);
    } finally {
      dbProduct.unlockInternal();
    }
  }
}
