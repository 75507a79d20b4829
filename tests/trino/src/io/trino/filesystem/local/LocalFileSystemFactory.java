package io.trino.filesystem.local;

import com.google.inject.Inject;
import io.trino.filesystem.FileEntry;
import io.trino.filesystem.FileIterator;
import io.trino.filesystem.Location;
import io.trino.filesystem.TrinoFileSystem;
import io.trino.filesystem.TrinoFileSystemFactory;
import io.trino.spi.security.ConnectorIdentity;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Stands before Trino's class of this name. Trino's local file system lists files as {@code local:///…}, also those of a
 * table at {@code file:/…}, and then its code for ACID tables fails: "does not start with directory". Its HDFS and S3 keep
 * the form that they are asked for, and so does this class. All else is Trino's own file system.
 */
public class LocalFileSystemFactory implements TrinoFileSystemFactory {

  private final LocalFileSystem disk;

  @Inject
  public LocalFileSystemFactory(LocalFileSystemConfig config) {
    disk = new LocalFileSystem(Path.of("/"));
  }

  @Override
  public TrinoFileSystem create(ConnectorIdentity identity) {
    return (TrinoFileSystem) Proxy.newProxyInstance(
        getClass().getClassLoader(), new Class<?>[] {TrinoFileSystem.class}, (proxy, method, args) -> {
          Object answer;
          try {
            answer = method.invoke(disk, args);
          } catch (InvocationTargetException e) {
            throw e.getCause();
          }
          return switch (method.getName()) {
            case "listFiles" -> new FilesInFormOf((FileIterator) answer, (Location) args[0]);
            case "listDirectories" -> ((Set<?>) answer).stream()
                .map(directory -> inFormOf((Location) args[0], (Location) directory))
                .collect(Collectors.toSet());
            case "createTemporaryDirectory" -> ((Optional<?>) answer)
                .map(directory -> inFormOf((Location) args[0], (Location) directory));
            default -> answer;
          };
        });
  }

  /** A path that the disk has listed, with the scheme and slashes of the location that was asked for. */
  private static Location inFormOf(Location asked, Location listed) {
    String path = listed.toString().replaceFirst("^(local|file):/*", "/");
    return Location.of(asked.toString().replaceFirst("^([a-z]+:(//)?)/.*$", "$1") + path);
  }

  private record FilesInFormOf(FileIterator files, Location asked) implements FileIterator {

    @Override
    public boolean hasNext() throws IOException {
      return files.hasNext();
    }

    @Override
    public FileEntry next() throws IOException {
      FileEntry file = files.next();
      Location location = inFormOf(asked, file.location());
      return new FileEntry(location, file.length(), file.lastModified(), file.blocks(), file.tags());
    }
  }
}
