package mini;

import java.io.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * A real YARN in one process, for tests: a resource manager and one node manager, over a running HDFS. It lives until
 * its standard input ends. Arguments: a directory, which gets the containers, too, and the clients' configuration of the
 * HDFS.
 *
 * <p>It writes one line: "OK", or "ERROR" and the reason.
 */
public class MiniYarn {
    private static final String[] ADDRESSES = {
        "yarn.resourcemanager.address", "yarn.resourcemanager.scheduler.address",
        "yarn.resourcemanager.resource-tracker.address", "yarn.resourcemanager.admin.address",
        "yarn.resourcemanager.webapp.address", "yarn.resourcemanager.hostname",
    };

    public static void main(String[] args) throws Exception {
        File base = new File(args[0]);
        System.setProperty("test.build.dir", base + "/build");
        System.setProperty("test.build.data", base + "/build");
        MiniYARNCluster cluster = new MiniYARNCluster("yarn", 1, 1, 1); // managers, node managers, directories
        cluster.init(configuration(new Path(args[1] + "/core-site.xml"), new Path(args[1] + "/hdfs-site.xml")));
        cluster.start();
        if (!cluster.waitForNodeManagersToConnect(60_000)) {
            System.out.println("ERROR no node manager has come");
            System.exit(1);
        }
        writeConfiguration(cluster.getConfig(), new File(base, "conf"));
        System.out.println("OK");
        System.out.flush();
        while (System.in.read() >= 0) { }
        cluster.stop(); // ends the containers
        System.exit(0);
    }

    private static Configuration configuration(Path... ofHdfs) {
        YarnConfiguration conf = new YarnConfiguration();
        for (Path file : ofHdfs) conf.addResource(file);
        conf.set("yarn.resourcemanager.scheduler.class",
            "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler");
        conf.set("yarn.scheduler.capacity.root.queues", "default");
        conf.set("yarn.scheduler.capacity.root.default.capacity", "100");
        conf.set("yarn.scheduler.capacity.maximum-am-resource-percent", "1.0");
        conf.set("yarn.scheduler.minimum-allocation-mb", "128");
        conf.set("yarn.nodemanager.resource.memory-mb", "6144");
        conf.set("yarn.nodemanager.resource.cpu-vcores", "8");
        conf.set("yarn.nodemanager.vmem-check-enabled", "false");
        conf.set("yarn.nodemanager.pmem-check-enabled", "false");
        conf.set("yarn.nodemanager.delete.debug-delay-sec", "600"); // a failed test shows the containers' logs
        conf.set("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "99");
        conf.set("yarn.nodemanager.env-whitelist", "JAVA_HOME");
        conf.set("yarn.is.minicluster", "true");
        return conf;
    }

    /** A client's yarn-site.xml. */
    private static void writeConfiguration(Configuration server, File directory) throws IOException {
        Configuration client = new Configuration(false);
        for (String name : ADDRESSES)
            if (server.get(name) != null) client.set(name, server.get(name));
        client.set("yarn.application.classpath", ""); // Spark's own jars have Hadoop's client
        directory.mkdirs();
        try (OutputStream file = new FileOutputStream(new File(directory, "yarn-site.xml"))) { client.writeXml(file); }
    }
}
