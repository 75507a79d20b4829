package hivereader;

import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;

/** Writes values as JSON on one line. NaN and the infinities become strings, byte arrays {@code "0x<hex>"}. */
final class Json {

  private Json() {
  }

  /** Builds an ordered JSON object from alternating keys and values. */
  static Map<String, Object> object(Object... keysAndValues) {
    Map<String, Object> object = new LinkedHashMap<>();
    for (int i = 0; i < keysAndValues.length; i += 2) {
      object.put((String) keysAndValues[i], keysAndValues[i + 1]);
    }
    return object;
  }

  static String of(Object value) {
    if (value == null || value instanceof Boolean) {
      return String.valueOf(value);
    }
    if (value instanceof Number number) {
      boolean finite = Double.isFinite(number.doubleValue()) || !(value instanceof Double || value instanceof Float);
      return finite ? number.toString() : quote(number.toString());
    }
    if (value instanceof Map<?, ?> map) {
      return map.entrySet().stream()
          .map(e -> quote(String.valueOf(e.getKey())) + ":" + of(e.getValue()))
          .collect(Collectors.joining(",", "{", "}"));
    }
    if (value instanceof Collection<?> items) {
      return items.stream().map(Json::of).collect(Collectors.joining(",", "[", "]"));
    }
    if (value instanceof Object[] items) {
      return of(Arrays.asList(items));
    }
    if (value instanceof byte[] bytes) {
      return quote(hex(bytes));
    }
    return quote(value.toString());
  }

  private static String hex(byte[] bytes) {
    StringBuilder text = new StringBuilder("0x");
    for (byte b : bytes) {
      text.append(String.format("%02x", b));
    }
    return text.toString();
  }

  private static String quote(String text) {
    StringBuilder json = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      switch (c) {
        case '"', '\\' -> json.append('\\').append(c);
        case '\n' -> json.append("\\n");
        case '\r' -> json.append("\\r");
        case '\t' -> json.append("\\t");
        default -> {
          if (mustEscape(c)) {
            json.append(String.format("\\u%04x", (int) c));
          } else {
            json.append(c);
          }
        }
      }
    }
    return json.append('"').toString();
  }

  /** Control characters, and the line separators that Python's and JavaScript's line readers split at. */
  private static boolean mustEscape(char c) {
    return Character.isISOControl(c) || Character.isSurrogate(c) || c == '\u2028' || c == '\u2029';
  }
}
