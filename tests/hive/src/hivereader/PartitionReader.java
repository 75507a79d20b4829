package hivereader;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Properties;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.ValidReaderWriteIdList;
import org.apache.hadoop.hive.common.type.DataTypePhysicalVariation;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.exec.vector.VectorExtractRow;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatchCtx;
import org.apache.hadoop.hive.ql.io.AcidDirectory;
import org.apache.hadoop.hive.ql.io.AcidInputFormat;
import org.apache.hadoop.hive.ql.io.AcidUtils;
import org.apache.hadoop.hive.ql.io.RecordIdentifier;
import org.apache.hadoop.hive.ql.io.orc.OrcInputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcSerde;
import org.apache.hadoop.hive.ql.io.orc.OrcStruct;
import org.apache.hadoop.hive.ql.metadata.VirtualColumn;
import org.apache.hadoop.hive.ql.plan.MapWork;
import org.apache.hadoop.hive.ql.plan.PartitionDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.hive.serde2.SerDeUtils;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.StructField;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.Reporter;

/**
 * Reads one partition as a Hive task would: {@link OrcInputFormat} plans the splits and gives the readers, in row
 * mode {@code OrcRawRecordMerger}, in vector mode {@code VectorizedOrcAcidRowBatchReader}. The job's settings are
 * those that Hive's compiler puts there.
 */
final class PartitionReader {

  /** Takes a row: its ROW__ID, or null where the reader gives none, and its values as Hive's Thrift service does. */
  interface RowSink {
    void accept(RecordIdentifier rowId, List<Object> values);
  }

  private static final int THRIFT_PROTOCOL_VERSION = 10;
  private static final String EVERYTHING = Long.MAX_VALUE + ":" + Long.MAX_VALUE + "::";
  private static final String WRITE_IDS = "default.t:" + EVERYTHING;

  private final Request request;
  private final List<Column> columns;
  private final PartitionDirectory partition;
  private final Path scratch;
  private final JobConf job;
  private final Properties tableProperties = new Properties();
  private VectorizedRowBatchCtx batchContext;

  PartitionReader(HiveConf base, Path scratch, Request request, PartitionDirectory partition) {
    this.request = request;
    this.columns = request.columns();
    this.partition = partition;
    this.scratch = scratch;
    this.job = new JobConf(base);
    setColumns();
    setSnapshot();
    setPlan();
  }

  void read(RowSink sink) throws Exception {
    try {
      if (!setInput()) {
        return;
      }
      OrcInputFormat format = new OrcInputFormat();
      for (InputSplit split : format.getSplits(job, 1)) {
        if (request.vectorized()) {
          readBatches(format, split, sink);
        } else {
          readRows(format, split, sink);
        }
      }
    } finally {
      Utilities.clearWorkMap(job);
    }
  }

  private void setColumns() {
    String names = columns.stream().map(Column::name).collect(Collectors.joining(","));
    String types = columns.stream().map(Column::type).collect(Collectors.joining(":"));
    for (String prefix : List.of("", "schema.evolution.")) {
      job.set(prefix + "columns", names);
      job.set(prefix + "columns.types", types);
    }
    job.set("hive.io.file.readcolumn.names", names);
    job.set("hive.io.file.readcolumn.ids",
        IntStream.range(0, columns.size()).mapToObj(String::valueOf).collect(Collectors.joining(",")));
    job.setBoolean("hive.io.file.read.all.columns", false);
    tableProperties.setProperty("name", "default.t");
    tableProperties.setProperty("columns", names);
    tableProperties.setProperty("columns.types", types);
    tableProperties.setProperty("transactional", "true");
  }

  private void setSnapshot() {
    job.set("hive.txn.valid.writeids", WRITE_IDS);
    job.set("hive.txn.tables.valid.writeids", WRITE_IDS);
    job.set("hive.txn.valid.txns", EVERYTHING);
    job.set("transactional", "true");
    job.set("transactional_properties", request.insertOnly() ? "insert_only" : "default");
    AcidUtils.setAcidOperationalProperties(job, !request.insertOnly(),
        request.insertOnly() ? null : AcidUtils.AcidOperationalProperties.getDefault());
  }

  /** The readers take the partition's description and the batch layout from the map task's plan. */
  private void setPlan() {
    MapWork work = new MapWork();
    work.setVectorMode(request.vectorized());
    work.addPathToAlias(partition.path(), "t");
    TableDesc table = new TableDesc(OrcInputFormat.class, OrcOutputFormat.class, tableProperties);
    work.setPathToPartitionInfo(new LinkedHashMap<>(
        Collections.singletonMap(partition.path(), new PartitionDesc(table, new LinkedHashMap<>()))));
    if (request.vectorized()) {
      batchContext = batchContext();
      work.setVectorizedRowBatchCtx(batchContext);
    }
    job.setBoolean("hive.vectorized.execution.enabled", request.vectorized());
    Utilities.cacheMapWork(job, work, new Path(scratch, "plan-" + UUID.randomUUID()));
  }

  private VectorizedRowBatchCtx batchContext() {
    int count = columns.size();
    String[] names = new String[count + 1];
    TypeInfo[] types = new TypeInfo[count + 1];
    for (int i = 0; i < count; i++) {
      names[i] = columns.get(i).name();
      types[i] = columns.get(i).typeInfo();
    }
    names[count] = VirtualColumn.ROWID.getName();
    types[count] = VirtualColumn.ROWID.getTypeInfo();
    DataTypePhysicalVariation[] variations = new DataTypePhysicalVariation[count + 1];
    Arrays.fill(variations, DataTypePhysicalVariation.NONE);
    return new VectorizedRowBatchCtx(names, types, variations, IntStream.range(0, count).toArray(), 0, 1,
        new VirtualColumn[] {VirtualColumn.ROWID}, new String[0], new DataTypePhysicalVariation[0]);
  }

  /** Full-ACID input is the partition's directory; of insert-only tables Hive lists the valid ones beforehand. */
  private boolean setInput() throws IOException {
    if (!request.insertOnly()) {
      FileInputFormat.setInputPaths(job, partition.path());
      return true;
    }
    AcidDirectory state = AcidUtils.getAcidState(FileSystem.getLocal(job), partition.path(), job,
        new ValidReaderWriteIdList(WRITE_IDS), null, false);
    List<Path> inputs = new ArrayList<>();
    if (state.getBaseDirectory() != null) {
      inputs.add(state.getBaseDirectory());
    }
    state.getCurrentDirectories().forEach(delta -> inputs.add(delta.getPath()));
    FileInputFormat.setInputPaths(job, inputs.toArray(new Path[0]));
    job.setBoolean("mapreduce.input.fileinputformat.input.dir.recursive", true);
    return !inputs.isEmpty();
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private void readRows(OrcInputFormat format, InputSplit split, RowSink sink) throws Exception {
    OrcSerde serde = new OrcSerde();
    serde.initialize(job, tableProperties, null);
    StructObjectInspector inspector = (StructObjectInspector) serde.getObjectInspector();
    List<? extends StructField> fields = inspector.getAllStructFieldRefs().subList(0, columns.size());
    try (CloseableReader<OrcStruct> reader =
        new CloseableReader<>((RecordReader) format.getRecordReader(split, job, Reporter.NULL))) {
      OrcStruct row = reader.createValue();
      while (reader.next(row)) {
        List<Object> values = new ArrayList<>();
        for (StructField field : fields) {
          values.add(payload(inspector.getStructFieldData(row, field), field.getFieldObjectInspector()));
        }
        values.addAll(partition.values());
        sink.accept(reader.rowId(), values);
      }
    }
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private void readBatches(OrcInputFormat format, InputSplit split, RowSink sink) throws Exception {
    TypeInfo[] types = batchContext.getRowColumnTypeInfos();
    ObjectInspector[] inspectors = Arrays.stream(types)
        .map(TypeInfoUtils::getStandardWritableObjectInspectorFromTypeInfo).toArray(ObjectInspector[]::new);
    VectorExtractRow extractor = new VectorExtractRow();
    extractor.init(types);
    try (CloseableReader<VectorizedRowBatch> reader =
        new CloseableReader<>((RecordReader) format.getRecordReader(split, job, Reporter.NULL))) {
      VectorizedRowBatch batch = reader.createValue();
      while (reader.next(batch)) {
        for (int i = 0; i < batch.size; i++) {
          Object[] row = new Object[types.length];
          extractor.extractRow(batch, batch.selectedInUse ? batch.selected[i] : i, row);
          List<Object> values = new ArrayList<>();
          for (int c = 0; c < columns.size(); c++) {
            values.add(payload(row[c], inspectors[c]));
          }
          values.addAll(partition.values());
          sink.accept(rowId(row[columns.size()]), values);
        }
      }
    }
  }

  private static Object payload(Object value, ObjectInspector inspector) {
    return value == null ? null : SerDeUtils.toThriftPayload(value, inspector, THRIFT_PROTOCOL_VERSION);
  }

  private static RecordIdentifier rowId(Object struct) {
    if (!(struct instanceof List<?> fields)) {
      return null;
    }
    return new RecordIdentifier(((LongWritable) fields.get(0)).get(), ((IntWritable) fields.get(1)).get(),
        ((LongWritable) fields.get(2)).get());
  }

  /** Hadoop's reader as a resource, without its unused key. */
  private record CloseableReader<V>(RecordReader<NullWritable, V> reader) implements AutoCloseable {
    V createValue() {
      return reader.createValue();
    }

    boolean next(V value) throws IOException {
      return reader.next(NullWritable.get(), value);
    }

    RecordIdentifier rowId() {
      return reader instanceof AcidInputFormat.AcidRecordReader<?, ?> acid ? acid.getRecordIdentifier() : null;
    }

    @Override
    public void close() throws IOException {
      reader.close();
    }
  }
}
