package kafkabroker;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * One broker of Kafka on 127.0.0.1, which is its own controller (KRaft). Prints its port once it answers. Then it sends
 * records, one a line: topic, key and value with tabs between them; without a value, a tombstone. An empty line waits
 * until all are stored, and prints a dot. It ends with its standard input, and so with the process that started it.
 */
public final class Broker {

  private static final int PARTITIONS = 2;

  private Broker() {
  }

  /** Argument: an empty directory for Kafka's log. */
  public static void main(String[] args) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err); // for what Kafka prints
    format(args[0]);
    int port = freePort();
    int controller = freePort();
    new KafkaRaftServer(new KafkaConfig(settings(args[0], port, controller), false), Time.SYSTEM).startup();
    Map<String, Object> client = Map.of("bootstrap.servers", "127.0.0.1:" + port, "enable.idempotence", true);
    try (KafkaProducer<String, String> producer =
        new KafkaProducer<>(client, new StringSerializer(), new StringSerializer())) {
      answers.println(port);
      answers.flush();
      send(producer, answers);
    }
    Runtime.getRuntime().halt(0);
  }

  private static void format(String directory) throws Exception {
    new Formatter()
        .setSupportedFeatures(Feature.PRODUCTION_FEATURES)
        .setClusterId(Uuid.randomUuid().toString())
        .setNodeId(1)
        .setControllerListenerName("CONTROLLER")
        .setMetadataLogDirectory(directory)
        .addDirectory(directory)
        .setReleaseVersion(MetadataVersion.latestProduction())
        .run();
  }

  private static Map<String, String> settings(String directory, int port, int controller) {
    return Map.ofEntries(
        Map.entry("process.roles", "broker,controller"),
        Map.entry("node.id", "1"),
        Map.entry("controller.quorum.voters", "1@127.0.0.1:" + controller),
        Map.entry("listeners", "PLAINTEXT://127.0.0.1:" + port + ",CONTROLLER://127.0.0.1:" + controller),
        Map.entry("controller.listener.names", "CONTROLLER"),
        Map.entry("log.dirs", directory),
        Map.entry("num.partitions", String.valueOf(PARTITIONS)),
        Map.entry("offsets.topic.replication.factor", "1"),
        Map.entry("offsets.topic.num.partitions", "1"),
        Map.entry("transaction.state.log.replication.factor", "1"),
        Map.entry("transaction.state.log.min.isr", "1"));
  }

  private static int freePort() throws Exception {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  private static void send(KafkaProducer<String, String> producer, PrintStream answers) throws Exception {
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    BufferedReader records = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = records.readLine(); line != null; line = records.readLine()) {
      if (!line.isEmpty()) {
        String[] parts = line.split("\t", 3);
        sent.add(producer.send(new ProducerRecord<>(parts[0], parts[1], parts.length < 3 ? null : parts[2])));
        continue;
      }
      for (Future<RecordMetadata> one : sent) {
        one.get();
      }
      sent.clear();
      answers.println(".");
      answers.flush();
    }
  }
}
