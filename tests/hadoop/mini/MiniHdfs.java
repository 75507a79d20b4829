package mini;

import java.io.*;
import java.nio.file.*;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.*;
import org.apache.hadoop.hdfs.*;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction;
import org.apache.hadoop.hdfs.server.datanode.DataNode;

/**
 * A real HDFS in one process, for tests: its name node (or two of them) and its data nodes. It lives until its standard
 * input ends. Arguments: a directory, the number of data nodes, "ha" or "single".
 *
 * <p>Each line of standard input is a command. The reply is one line: "OK", with a result, or "ERROR" and the reason.
 */
public class MiniHdfs {
    // A JVM caches a name service's client, so each server has its own name.
    private static final String SERVICE = "mini" + ProcessHandle.current().pid();
    private static MiniDFSCluster cluster;
    private static final Map<Integer, MiniDFSCluster.DataNodeProperties> stopped = new HashMap<>();

    public static void main(String[] args) throws Exception {
        File base = new File(args[0]);
        boolean isHa = args[2].equals("ha");
        System.setProperty("test.build.data", base + "/build");
        Configuration conf = new HdfsConfiguration();
        conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, base + "/dfs");
        conf.set("dfs.namenode.fs-limits.min-block-size", "1024");
        conf.set("dfs.permissions.enabled", "true");
        conf.set("dfs.namenode.acls.enabled", "true");
        conf.set("dfs.client.block.write.replace-datanode-on-failure.policy", "NEVER"); // two data nodes
        MiniDFSCluster.Builder builder = new MiniDFSCluster.Builder(conf).numDataNodes(Integer.parseInt(args[1]));
        if (isHa)
            builder.nnTopology(new MiniDFSNNTopology().addNameservice(new MiniDFSNNTopology.NSConf(SERVICE)
                .addNN(new MiniDFSNNTopology.NNConf("nn1")).addNN(new MiniDFSNNTopology.NNConf("nn2"))));
        cluster = builder.build();
        if (isHa) cluster.transitionToActive(0);
        cluster.waitActive();
        writeConfiguration(new File(base, "conf"), isHa);
        System.out.println("OK " + (isHa ? "hdfs://" + SERVICE : "hdfs://127.0.0.1:" + cluster.getNameNodePort(0)));
        System.out.flush();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String reply;
            try {
                reply = "OK " + run(line.trim().split(" "));
            } catch (Throwable error) {
                reply = "ERROR " + String.valueOf(error).replace('\n', ' ');
            }
            System.out.println(reply.trim());
            System.out.flush();
        }
        System.exit(0); // as a power cut: nobody reads these files again
    }

    private static String run(String[] words) throws Exception {
        DistributedFileSystem fs = cluster.getFileSystem(active());
        switch (words[0]) {
            case "failover": { // the active name node becomes the standby
                int was = active();
                cluster.transitionToStandby(was);
                cluster.transitionToActive(1 - was);
                return "";
            }
            case "standby": // no name node is active, until "activate"
                cluster.transitionToStandby(active());
                return "";
            case "activate":
                cluster.transitionToActive(Integer.parseInt(words[1]));
                return "";
            case "kill": { // the active name node ends; the other takes over
                int dead = active();
                cluster.shutdownNameNode(dead);
                cluster.transitionToActive(1 - dead);
                return "";
            }
            case "revive": // a name node that has ended, as the standby
                cluster.restartNameNode(Integer.parseInt(words[1]), false);
                return "";
            case "stop": { // a data node
                int number = Integer.parseInt(words[1]);
                String name = cluster.getDataNodes().get(number).getDisplayName();
                stopped.put(number, cluster.stopDataNode(name));
                return "";
            }
            case "start": // all data nodes that have been stopped
                for (MiniDFSCluster.DataNodeProperties node : stopped.values()) cluster.restartDataNode(node, true);
                stopped.clear();
                cluster.waitActive();
                return "";
            case "safe":
                fs.setSafeMode(org.apache.hadoop.fs.SafeModeAction.ENTER);
                return "";
            case "unsafe":
                fs.setSafeMode(org.apache.hadoop.fs.SafeModeAction.LEAVE);
                return "";
            case "syncs": { // how many files the data nodes have synced to their disks
                long count = 0;
                for (DataNode node : cluster.getDataNodes()) count += syncs(node);
                return String.valueOf(count);
            }
            case "quota": // PATH NAMES BYTES; -1: none
                fs.setQuota(new Path(words[1]), Long.parseLong(words[2]), Long.parseLong(words[3]));
                return "";
            case "snapshot": // PATH NAME
                fs.allowSnapshot(new Path(words[1]));
                fs.createSnapshot(new Path(words[1]), words[2]);
                return "";
            case "forget": // PATH NAME: the snapshot
                fs.deleteSnapshot(new Path(words[1]), words[2]);
                fs.disallowSnapshot(new Path(words[1]));
                return "";
            case "own": // PATH OWNER GROUP MODE
                fs.mkdirs(new Path(words[1]));
                fs.setOwner(new Path(words[1]), words[2], words[3]);
                fs.setPermission(new Path(words[1]), new FsPermission(words[4]));
                return "";
            case "acl": // PATH ACL
                fs.modifyAclEntries(new Path(words[1]), AclEntry.parseAclSpec(words[2], true));
                return "";
            case "status": { // PATH: owner, group, mode
                org.apache.hadoop.fs.FileStatus status = fs.getFileStatus(new Path(words[1]));
                return status.getOwner() + " " + status.getGroup() + " " + status.getPermission();
            }
            case "open": { // PATH TEXT: a file that its writer keeps open, flushed as Hive's streaming does
                org.apache.hadoop.fs.FSDataOutputStream file = fs.create(new Path(words[1]), true);
                file.write(Base64.getDecoder().decode(words[2]));
                file.hflush();
                open.put(words[1], file);
                return "";
            }
            case "close": // PATH
                open.remove(words[1]).close();
                return "";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static final Map<String, org.apache.hadoop.fs.FSDataOutputStream> open = new HashMap<>();

    private static int active() {
        for (int i = 0; i < cluster.getNumNameNodes(); i++)
            if (cluster.getNameNode(i) != null && cluster.getNameNode(i).isActiveState()) return i;
        return 0;
    }

    /** The data node's metric FsyncCount; its MBean is some seconds old. */
    private static long syncs(DataNode node) throws Exception {
        java.lang.reflect.Field counter = node.getMetrics().getClass().getDeclaredField("fsyncCount");
        counter.setAccessible(true);
        return ((org.apache.hadoop.metrics2.lib.MutableCounterLong) counter.get(node.getMetrics())).value();
    }

    /** The client's configuration: core-site.xml and hdfs-site.xml. */
    private static void writeConfiguration(File directory, boolean isHa) throws IOException {
        Configuration core = new Configuration(false), hdfs = new Configuration(false);
        if (isHa) {
            core.set("fs.defaultFS", "hdfs://" + SERVICE);
            hdfs.set("dfs.nameservices", SERVICE);
            hdfs.set("dfs.ha.namenodes." + SERVICE, "nn1,nn2");
            for (int i = 0; i < 2; i++)
                hdfs.set("dfs.namenode.rpc-address." + SERVICE + ".nn" + (i + 1),
                    "127.0.0.1:" + cluster.getNameNodePort(i));
            hdfs.set("dfs.client.failover.proxy.provider." + SERVICE,
                "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider");
        } else {
            core.set("fs.defaultFS", "hdfs://127.0.0.1:" + cluster.getNameNodePort(0));
        }
        directory.mkdirs();
        try (OutputStream file = new FileOutputStream(new File(directory, "core-site.xml"))) { core.writeXml(file); }
        try (OutputStream file = new FileOutputStream(new File(directory, "hdfs-site.xml"))) { hdfs.writeXml(file); }
    }
}
