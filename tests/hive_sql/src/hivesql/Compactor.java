package hivesql;

import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.txn.compactor.Cleaner;
import org.apache.hadoop.hive.ql.txn.compactor.CompactorThread;
import org.apache.hadoop.hive.ql.txn.compactor.Initiator;
import org.apache.hadoop.hive.ql.txn.compactor.Worker;

/** One pass of a thread of Hive's compactor, when a test asks for it. */
final class Compactor {

  private Compactor() {
  }

  static List<Object> run(HiveConf conf, String name) throws Exception {
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
