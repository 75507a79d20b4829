package hivereader;

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.io.RecordIdentifier;

/**
 * Reads the directories of ACID tables with Hive's own readers, without a metastore: every write id is valid, and
 * the columns come with the request.
 *
 * <p>Each line of standard input is a {@link Request}. The answer is a JSON object for each row, {@code {"row__id":
 * [writeid, bucketid, rowid], "values": [...]}}, and {@code {"done": true}}; or {@code {"error": ...}}.
 */
public final class HiveReader {

  private final HiveConf conf = new HiveConf(HiveReader.class);
  private final Path scratch;
  private final PrintStream out;

  private HiveReader(Path scratch, PrintStream out) {
    this.scratch = scratch;
    this.out = out;
    conf.set("fs.defaultFS", "file:///");
    conf.set("hive.exec.scratchdir", scratch.toString());
  }

  /** The only argument is a directory for scratch files. */
  public static void main(String[] args) throws IOException {
    PrintStream out = new PrintStream(
        new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16), false, StandardCharsets.UTF_8);
    System.setOut(System.err);  // Hive's own messages must not mix with the answers
    new HiveReader(new Path("file:" + args[0]), out)
        .serve(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
    Runtime.getRuntime().halt(0);  // Hadoop's and Hive's shutdown hooks are slow and have nothing to save
  }

  private void serve(BufferedReader requests) throws IOException {
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      try {
        read(Request.parse(line));
        print(Map.of("done", true));
      } catch (Throwable e) {  // a broken table may well end in an Error inside ORC
        e.printStackTrace();
        print(Map.of("error", root(e).toString()));
      }
      out.flush();
    }
  }

  private void read(Request request) throws Exception {
    FileSystem fs = FileSystem.getLocal(conf);
    Path table = fs.makeQualified(new Path(request.directory()));
    if (table.toUri().getPath().matches(".*/[._].*")) {
      throw new IllegalArgumentException(
          "Hive takes everything below a directory whose name starts with '.' or '_' as hidden: " + table);
    }
    for (PartitionDirectory partition : PartitionDirectory.find(fs, table, request.partitionColumns())) {
      new PartitionReader(conf, scratch, request, partition).read(this::printRow);
    }
  }

  private void printRow(RecordIdentifier id, List<Object> values) {
    print(Json.object("row__id",
        id == null ? null : List.of(id.getWriteId(), id.getBucketProperty(), id.getRowId()), "values", values));
  }

  private void print(Map<String, Object> answer) {
    out.println(Json.of(answer));
  }

  private static Throwable root(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null && cause.getCause() != cause) {
      cause = cause.getCause();
    }
    return cause;
  }
}
