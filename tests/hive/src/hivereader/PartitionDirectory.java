package hivereader;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.FileUtils;
import org.apache.hadoop.hive.serde2.SerDeUtils;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorConverters;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.PrimitiveObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;

/** A directory that holds base and delta directories, and the values of the partition columns for its rows. */
record PartitionDirectory(Path path, List<Object> values) {

  private static final String DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__";

  /** All partitions below a table's directory; the directory itself if there are no partition columns. */
  static List<PartitionDirectory> find(FileSystem fs, Path table, List<Column> partitionColumns) throws IOException {
    List<PartitionDirectory> found = new ArrayList<>();
    find(fs, new PartitionDirectory(table, List.of()), partitionColumns, found);
    return found;
  }

  private static void find(FileSystem fs, PartitionDirectory parent, List<Column> columns,
      List<PartitionDirectory> found) throws IOException {
    int depth = parent.values.size();
    if (depth == columns.size()) {
      found.add(parent);
      return;
    }
    FileStatus[] children = fs.listStatus(parent.path);
    Arrays.sort(children);
    for (FileStatus child : children) {
      String name = child.getPath().getName();
      int equals = name.indexOf('=');
      if (child.isDirectory() && equals > 0 && !name.startsWith("_") && !name.startsWith(".")) {
        List<Object> values = new ArrayList<>(parent.values);
        values.add(value(FileUtils.unescapePathName(name.substring(equals + 1)), columns.get(depth)));
        find(fs, new PartitionDirectory(child.getPath(), values), columns, found);
      }
    }
  }

  /** As Hive gives it: the default partition is NULL, but for a string column its name as text. */
  private static Object value(String text, Column column) {
    if (text.equals(DEFAULT_PARTITION) && !column.type().equals("string")) {
      return null;
    }
    ObjectInspector inspector = TypeInfoUtils.getStandardJavaObjectInspectorFromTypeInfo(column.typeInfo());
    Object value = ObjectInspectorConverters
        .getConverter(PrimitiveObjectInspectorFactory.javaStringObjectInspector, inspector).convert(text);
    return value == null ? null : SerDeUtils.toThriftPayload(value, inspector, 10);
  }
}
