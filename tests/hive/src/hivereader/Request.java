package hivereader;

import java.util.List;

/**
 * One question to the reader.
 *
 * @param directory the table's directory
 * @param columns the table's columns without the partition columns, in the table's order
 * @param partitionColumns the partition columns in order; empty if the table is not partitioned
 * @param vectorized whether Hive's vectorised reader is asked, or the one that reads row by row
 * @param insertOnly whether the table is insert-only: it has no row ids
 */
record Request(String directory, List<Column> columns, List<Column> partitionColumns, boolean vectorized,
    boolean insertOnly) {

  /** Five fields with tabs between them, columns as {@code name:type,name:type}. */
  static Request parse(String line) {
    String[] fields = line.split("\t", -1);
    if (fields.length != 5) {
      throw new IllegalArgumentException("five fields, not " + fields.length + ": " + line);
    }
    return new Request(fields[0], Column.parseList(fields[1]), Column.parseList(fields[2]),
        Boolean.parseBoolean(fields[3]), Boolean.parseBoolean(fields[4]));
  }
}
