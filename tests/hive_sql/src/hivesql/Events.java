package hivesql;

import java.sql.Connection;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HMSHandler;
import org.apache.hadoop.hive.metastore.TransactionalMetaStoreEventListener;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.NotificationEvent;
import org.apache.hadoop.hive.metastore.events.AbortTxnEvent;
import org.apache.hadoop.hive.metastore.events.AcidWriteEvent;
import org.apache.hadoop.hive.metastore.events.AddPartitionEvent;
import org.apache.hadoop.hive.metastore.events.AllocWriteIdEvent;
import org.apache.hadoop.hive.metastore.events.AlterTableEvent;
import org.apache.hadoop.hive.metastore.events.CommitTxnEvent;
import org.apache.hadoop.hive.metastore.events.CreateTableEvent;
import org.apache.hadoop.hive.metastore.events.DropPartitionEvent;
import org.apache.hadoop.hive.metastore.events.DropTableEvent;
import org.apache.hadoop.hive.metastore.tools.SQLGenerator;

/**
 * Writes events into the metastore's NOTIFICATION_LOG, from which {@code get_next_notification} answers. It stands for
 * Hive's DbNotificationListener, which Maven does not have for this version; its messages are plain text.
 */
public final class Events extends TransactionalMetaStoreEventListener {

  public Events(Configuration conf) {
    super(conf);
  }

  private void write(String type, String database, String table, Object message) throws MetaException {
    NotificationEvent event = new NotificationEvent(
        0, (int) (System.currentTimeMillis() / 1000), type, String.valueOf(message));
    event.setCatName("hive");
    event.setDbName(database);
    event.setTableName(table);
    event.setMessageFormat("text");
    HMSHandler.getMSForConf(getConf()).addNotificationEvent(event);
  }

  @Override
  public void onCreateTable(CreateTableEvent event) throws MetaException {
    write("CREATE_TABLE", event.getTable().getDbName(), event.getTable().getTableName(), "");
  }

  @Override
  public void onDropTable(DropTableEvent event) throws MetaException {
    write("DROP_TABLE", event.getTable().getDbName(), event.getTable().getTableName(), "");
  }

  @Override
  public void onAlterTable(AlterTableEvent event) throws MetaException {
    write("ALTER_TABLE", event.getOldTable().getDbName(), event.getOldTable().getTableName(), "");
  }

  @Override
  public void onAddPartition(AddPartitionEvent event) throws MetaException {
    write("ADD_PARTITION", event.getTable().getDbName(), event.getTable().getTableName(), "");
  }

  @Override
  public void onDropPartition(DropPartitionEvent event) throws MetaException {
    write("DROP_PARTITION", event.getTable().getDbName(), event.getTable().getTableName(), "");
  }

  @Override
  public void onAllocWriteId(AllocWriteIdEvent event, Connection connection, SQLGenerator generator)
      throws MetaException {
    write("ALLOC_WRITE_ID", event.getDbName(), event.getTableName(), event.getTxnToWriteIdList());
  }

  @Override
  public void onCommitTxn(CommitTxnEvent event, Connection connection, SQLGenerator generator) throws MetaException {
    write("COMMIT_TXN", null, null, event.getTxnId());
  }

  @Override
  public void onAbortTxn(AbortTxnEvent event, Connection connection, SQLGenerator generator) throws MetaException {
    write("ABORT_TXN", null, null, event.getTxnId());
  }

  @Override
  public void onAcidWrite(AcidWriteEvent event, Connection connection, SQLGenerator generator) throws MetaException {
    write("ACID_WRITE", event.getDatabase(), event.getTable(), event.getFiles());
  }
}
