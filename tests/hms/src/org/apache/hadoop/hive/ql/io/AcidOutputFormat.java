package org.apache.hadoop.hive.ql.io;

/** A marker with the name of Hive's interface. */
public interface AcidOutputFormat {
}
