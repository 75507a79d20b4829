package trinobeside;

import io.trino.plugin.hive.HivePlugin;
import io.trino.server.testing.TestingTrinoServer;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * One coordinator of Trino, with the catalog {@code hive} over a Hive Metastore. Prints its address once it answers. It
 * ends with its standard input, and so with the process that started it.
 */
public final class Server {

  private static final Map<String, String> SERVER = Map.of(
      "query.max-memory-per-node", "400MB",
      "memory.heap-headroom-per-node", "200MB");

  private static final Map<String, String> CATALOG = Map.of(
      "hive.metastore", "thrift",
      "hive.security", "allow-all",
      "hive.timestamp-precision", "NANOSECONDS",
      "hive.hive-views.enabled", "true",
      "fs.local.enabled", "true",
      "local.location", "/");

  private Server() {
  }

  /** Arguments: an empty directory, the metastore's address, and more settings of the catalog, each {@code key=value}. */
  public static void main(String[] args) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err); // for what Trino prints
    try {
      TestingTrinoServer server = new TestingTrinoServer.Builder()
          .setCoordinator(true)
          .setBaseDataDir(Optional.of(Path.of(args[0])))
          .setProperties(SERVER)
          .build();
      server.installPlugin(new HivePlugin());
      Map<String, String> catalog = new HashMap<>(CATALOG);
      catalog.put("hive.metastore.uri", args[1]);
      catalog.put("hive.temporary-staging-directory-path", args[0] + "/staging"); // on the warehouse's disk
      for (int i = 2; i < args.length; i++) {
        String[] setting = args[i].split("=", 2);
        catalog.put(setting[0], setting[1]);
      }
      server.createCatalog("hive", "hive", catalog);
      answers.println(server.getBaseUrl());
      answers.flush();
      System.in.transferTo(PrintStream.nullOutputStream());
    } catch (Throwable e) {
      e.printStackTrace();
    }
    Runtime.getRuntime().halt(0);
  }
}
