package hivesql;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.DriverFactory;
import org.apache.hadoop.hive.ql.IDriver;
import org.apache.hadoop.hive.ql.processors.CommandProcessor;
import org.apache.hadoop.hive.ql.processors.CommandProcessorFactory;
import org.apache.hadoop.hive.ql.session.SessionState;

/** A session of Hive, bound to the thread that makes it. */
final class Session {

  private static final Set<String> COMMANDS = Set.of("set", "reset");
  private static final int FETCHED_AT_ONCE = 1000;

  private final SessionState state;

  Session(HiveConf base) throws Exception {
    HiveConf conf = new HiveConf(base);
    // Values as HiveServer2 gives them, not as text.
    conf.set("list.sink.output.formatter", "org.apache.hadoop.hive.serde2.thrift.ThriftFormatter");
    state = new SessionState(conf);
    state.initTxnMgr(conf);
    SessionState.start(state);
  }

  void close() throws Exception {
    state.close();
  }

  /** Runs a statement to its end; its rows, if it returns any. */
  List<Object> run(String sql) throws Exception {
    String[] words = sql.split("\\s+", 2);
    if (COMMANDS.contains(words[0].toLowerCase())) {
      return set(words);
    }
    List<Object> rows = new ArrayList<>();
    try (IDriver driver = DriverFactory.newDriver(state.getConf())) {
      driver.run(sql);
      if (driver.getSchema() == null || driver.getSchema().getFieldSchemas() == null) {
        return rows;
      }
      List<Object> some = new ArrayList<>();
      driver.setMaxRows(FETCHED_AT_ONCE);
      while (driver.getResults(some)) {
        rows.addAll(some);
        some.clear();
      }
    }
    return rows;
  }

  private List<Object> set(String[] words) throws Exception {
    try (CommandProcessor processor = CommandProcessorFactory.getForHiveCommand(words, state.getConf())) {
      processor.run(words[1].strip());
    }
    return List.of();
  }
}
