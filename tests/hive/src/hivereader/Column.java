package hivereader;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;

/** A column's name (lower case, as in the metastore) and Hive type. */
record Column(String name, String type) {

  TypeInfo typeInfo() {
    return TypeInfoUtils.getTypeInfoFromTypeString(type);
  }

  /** Parses {@code name:type,name:type}; commas inside {@code <>} and {@code ()} belong to the type. */
  static List<Column> parseList(String text) {
    List<Column> columns = new ArrayList<>();
    int depth = 0;
    int start = 0;
    for (int i = 0; i <= text.length(); i++) {
      char c = i < text.length() ? text.charAt(i) : ',';
      if (c == '<' || c == '(') {
        depth++;
      } else if (c == '>' || c == ')') {
        depth--;
      } else if (c == ',' && depth == 0) {
        if (!text.substring(start, i).isBlank()) {
          columns.add(parse(text.substring(start, i)));
        }
        start = i + 1;
      }
    }
    return columns;
  }

  private static Column parse(String text) {
    int colon = text.indexOf(':');
    if (colon < 0) {
      throw new IllegalArgumentException("not name:type: " + text);
    }
    return new Column(text.substring(0, colon).trim().toLowerCase(Locale.ROOT), text.substring(colon + 1).trim());
  }
}
