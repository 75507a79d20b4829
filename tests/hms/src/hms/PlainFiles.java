package hms;

import org.apache.hadoop.fs.LocalFileSystem;

/** Hadoop's local file system without {@code .crc} files, which no other writer of a table makes. */
public class PlainFiles extends LocalFileSystem {

  public PlainFiles() {
    setWriteChecksum(false);
    setVerifyChecksum(false);
  }
}
