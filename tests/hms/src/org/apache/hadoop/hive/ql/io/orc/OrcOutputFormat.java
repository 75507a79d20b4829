package org.apache.hadoop.hive.ql.io.orc;

import org.apache.hadoop.hive.ql.io.AcidOutputFormat;

/**
 * Stands in for hive-exec's class of this name. The metastore loads a table's formats at CREATE TABLE to see whether
 * they are ACID formats, and never reads a row with them.
 */
public class OrcOutputFormat implements AcidOutputFormat {
}
