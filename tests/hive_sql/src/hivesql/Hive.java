package hivesql;

import hms.Server;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;

/**
 * A Hive Metastore, and beside it Hive's SQL, which asks the metastore by Thrift as a HiveServer2 does. Prints the SQL's
 * port, then does what {@link Server} does. Each connection to that port is a Hive session. Its lines are statements
 * of HiveQL or, with {@code !} first, of {@link Compactor}; the answer to each is a line of JSON.
 */
public final class Hive {

  /** What HiveServer2 announces; without it the metastore refuses to create or alter ACID tables. */
  private static final String[] CAPABILITIES = {
      "EXTWRITE", "EXTREAD", "HIVEBUCKET2", "HIVEFULLACIDREAD", "HIVEFULLACIDWRITE", "HIVECACHEINVALIDATE",
      "HIVEMANAGESTATS", "HIVEMANAGEDINSERTWRITE", "HIVEMANAGEDINSERTREAD", "HIVESQL"};

  private final HiveConf conf;
  private final ObjectMapper json = new ObjectMapper();

  private Hive(HiveConf conf) {
    this.conf = conf;
  }

  /** The arguments are those of {@link Server}. */
  public static void main(String[] args) throws Exception {
    int port = args[0].equals("0") ? Server.freePort() : Integer.parseInt(args[0]);
    HiveMetaStoreClient.setProcessorIdentifier("HiveServer2#4.0.1@localhost");
    HiveMetaStoreClient.setProcessorCapabilities(CAPABILITIES);
    HiveConf conf = new HiveConf(Hive.class);
    conf.set("hive.metastore.uris", "thrift://127.0.0.1:" + port);
    ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    System.out.println(listener.getLocalPort());
    System.out.flush();
    daemon(() -> new Hive(conf).serve(listener));
    Server.main(new String[] {String.valueOf(port), args[1]});
  }

  private static void daemon(Runnable work) {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    thread.start();
  }

  private void serve(ServerSocket listener) {
    while (true) {
      try {
        Socket socket = listener.accept();
        daemon(() -> answer(socket));
      } catch (IOException e) {
        e.printStackTrace();
      }
    }
  }

  /** Answers one connection. Hive binds a session to the thread that starts it. */
  private void answer(Socket socket) {
    try (socket;
        BufferedReader statements = new BufferedReader(
            new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
        PrintWriter answers = new PrintWriter(
            new OutputStreamWriter(socket.getOutputStream(), StandardCharsets.UTF_8))) {
      Session session = new Session(conf);
      for (String line = statements.readLine(); line != null; line = statements.readLine()) {
        answers.println(json.writeValueAsString(run(session, line)));
        answers.flush();
      }
      session.close();
    } catch (Exception e) {
      e.printStackTrace();
    }
  }

  private Map<String, Object> run(Session session, String line) {
    Map<String, Object> answer = new LinkedHashMap<>();
    try {
      answer.put("rows", line.startsWith("!") ? Compactor.run(conf, line.substring(1)) : session.run(line));
    } catch (Throwable e) { // the next statement may well succeed
      StringWriter trace = new StringWriter();
      e.printStackTrace(new PrintWriter(trace));
      answer.put("error", trace.toString());
    }
    return answer;
  }
}
