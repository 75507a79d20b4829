package hivesql;

import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.txn.service.AcidHouseKeeperService;
import org.apache.hadoop.hive.ql.txn.compactor.Cleaner;
import org.apache.hadoop.hive.ql.txn.compactor.CompactorThread;
import org.apache.hadoop.hive.ql.txn.compactor.Initiator;
import org.apache.hadoop.hive.ql.txn.compactor.Worker;

/** One pass of a thread of Hive's compactor, or of the housekeeping, when a test asks for it. */
final class Compactor {

  private Compactor() {
  }

  static List<Object> run(HiveConf conf, String name) throws Exception {
    if (name.equals("housekeeper")) {
      AcidHouseKeeperService housekeeper = new AcidHouseKeeperService();
      housekeeper.setConf(new HiveConf(conf));
      housekeeper.run();
      return List.of();
    }
    CompactorThread thread = switch (name) {
      case "worker" -> new Worker();
      case "cleaner" -> new Cleaner();
      case "initiator" -> new Initiator();
      default -> throw new IllegalArgumentException(name);
    };
    thread.setConf(new HiveConf(conf));
    thread.init(new AtomicBoolean(true)); // told to stop from the start, it ends after one pass
    thread.run();
    return List.of();
  }
}
