package org.apache.hive.hcatalog.listener;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HMSHandler;
import org.apache.hadoop.hive.metastore.TransactionalMetaStoreEventListener;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.NotificationEvent;
import org.apache.hadoop.hive.metastore.events.AddPartitionEvent;
import org.apache.hadoop.hive.metastore.events.AlterPartitionEvent;
import org.apache.hadoop.hive.metastore.events.AlterTableEvent;
import org.apache.hadoop.hive.metastore.events.CreateTableEvent;
import org.apache.hadoop.hive.metastore.events.DropDatabaseEvent;
import org.apache.hadoop.hive.metastore.events.DropPartitionEvent;
import org.apache.hadoop.hive.metastore.events.DropTableEvent;
import org.apache.hadoop.hive.metastore.messaging.EventMessage;
import org.apache.hadoop.hive.metastore.messaging.MessageBuilder;
import org.apache.hadoop.hive.metastore.messaging.MessageEncoder;
import org.apache.hadoop.hive.metastore.messaging.MessageFactory;

/**
 * Stands in for Hive's own, whose jar Maven has for no Hive 4.0: writes changes of the catalog into the notification
 * log, by the server's own messages and in the database transaction that makes the change. Hive's own also writes
 * transactions, functions and constraints, and deletes old entries.
 */
public class DbNotificationListener extends TransactionalMetaStoreEventListener {

  private final MessageBuilder messages = MessageBuilder.getInstance();
  private final MessageEncoder encoder;

  public DbNotificationListener(Configuration conf) {
    super(conf);
    encoder = MessageFactory.getDefaultInstance(conf);
  }

  @Override
  public void onCreateTable(CreateTableEvent event) throws MetaException {
    write(messages.buildCreateTableMessage(event.getTable(), null), event.getTable().getTableName());
  }

  @Override
  public void onDropTable(DropTableEvent event) throws MetaException {
    write(messages.buildDropTableMessage(event.getTable()), event.getTable().getTableName());
  }

  @Override
  public void onAlterTable(AlterTableEvent event) throws MetaException {
    write(
        messages.buildAlterTableMessage(
            event.getOldTable(), event.getNewTable(), event.getIsTruncateOp(), event.getWriteId()),
        event.getNewTable().getTableName());
  }

  @Override
  public void onAddPartition(AddPartitionEvent event) throws MetaException {
    write(
        messages.buildAddPartitionMessage(event.getTable(), event.getPartitionIterator(), null),
        event.getTable().getTableName());
  }

  @Override
  public void onDropPartition(DropPartitionEvent event) throws MetaException {
    write(
        messages.buildDropPartitionMessage(event.getTable(), event.getPartitionIterator()),
        event.getTable().getTableName());
  }

  @Override
  public void onAlterPartition(AlterPartitionEvent event) throws MetaException {
    write(
        messages.buildAlterPartitionMessage(
            event.getTable(), event.getOldPartition(), event.getNewPartition(), event.getIsTruncateOp(),
            event.getWriteId()),
        event.getTable().getTableName());
  }

  @Override
  public void onDropDatabase(DropDatabaseEvent event) throws MetaException {
    write(messages.buildDropDatabaseMessage(event.getDatabase()), null);
  }

  private void write(EventMessage message, String table) throws MetaException {
    int seconds = (int) (System.currentTimeMillis() / 1000);
    NotificationEvent event = new NotificationEvent(
        0, seconds, message.getEventType().toString(), encoder.getSerializer().serialize(message));
    event.setMessageFormat(encoder.getMessageFormat());
    event.setCatName("hive");
    event.setDbName(message.getDB());
    event.setTableName(table);
    HMSHandler.getMSForConf(getConf()).addNotificationEvent(event);
  }
}
