package hms;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf.ConfVars;

/**
 * A Hive Metastore on 127.0.0.1 over an embedded Derby database. Prints its port once it answers. Then it answers SQL
 * about its own database, a statement a line: the rows with tabs between the values, then a line with a dot. It ends
 * with its standard input, and so with the process that started it.
 */
public final class Server {

  private static final long PATIENCE_MILLIS = 120_000;

  private Server() {
  }

  /** Arguments: the port, 0 for a free one, and the SQL file of the schema. */
  public static void main(String[] args) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err); // for what Hive prints
    int port = args[0].equals("0") ? freePort() : Integer.parseInt(args[0]);
    Configuration conf = MetastoreConf.newMetastoreConf();
    String url = MetastoreConf.getVar(conf, ConfVars.CONNECT_URL_KEY);
    createTables(url, Path.of(args[1]));
    Thread server = new Thread(() -> serve(port));
    server.setDaemon(true);
    server.start();
    waitUntilItListens(port);
    answers.println(port);
    answers.flush();
    answerQuestions(url, answers);
    Runtime.getRuntime().halt(0);
  }

  private static void serve(int port) {
    try {
      HiveMetaStore.main(new String[] {"-p", String.valueOf(port)});
    } catch (Throwable e) {
      e.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
  }

  /** A port that nobody listens on. */
  public static int freePort() throws Exception {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  private static void createTables(String url, Path schema) throws Exception {
    try (Connection connection = DriverManager.getConnection(url); Statement statement = connection.createStatement()) {
      try (ResultSet found = statement.executeQuery("SELECT COUNT(*) FROM SYS.SYSTABLES WHERE TABLENAME = 'TXNS'")) {
        found.next();
        if (found.getInt(1) > 0) {
          return;
        }
      }
      StringBuilder command = new StringBuilder();
      for (String line : Files.readAllLines(schema)) {
        String text = line.strip();
        if (text.isEmpty() || text.startsWith("--")) {
          continue;
        }
        command.append(line).append('\n');
        if (text.endsWith(";")) {
          statement.execute(command.substring(0, command.lastIndexOf(";")));
          command.setLength(0);
        }
      }
    }
  }

  /** The server listens once all else is ready. */
  private static void waitUntilItListens(int port) throws Exception {
    long deadline = System.currentTimeMillis() + PATIENCE_MILLIS;
    while (true) {
      try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
        return;
      } catch (IOException e) {
        if (System.currentTimeMillis() > deadline) {
          throw e;
        }
        Thread.sleep(100);
      }
    }
  }

  private static void answerQuestions(String url, PrintStream answers) throws Exception {
    BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String sql = questions.readLine(); sql != null; sql = questions.readLine()) {
      try (Connection connection = DriverManager.getConnection(url); Statement statement = connection.createStatement()) {
        if (statement.execute(sql)) {
          print(statement.getResultSet(), answers);
        }
      } catch (SQLException e) {
        answers.println("!" + e.getMessage().replace('\n', ' '));
      }
      answers.println(".");
      answers.flush();
    }
  }

  private static void print(ResultSet rows, PrintStream answers) throws SQLException {
    int columns = rows.getMetaData().getColumnCount();
    while (rows.next()) {
      StringBuilder line = new StringBuilder("=");
      for (int column = 1; column <= columns; column++) {
        String value = rows.getString(column);
        line.append(column > 1 ? "\t" : "").append(value == null ? "NULL" : value);
      }
      answers.println(line);
    }
  }
}
