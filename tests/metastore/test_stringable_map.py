"""Properties as one text, as Hive writes and reads them."""

import pytest

from acidsql.errors import FormatError
from acidsql.metastore.stringable_map import decode, encode

TEXTS = [
    ({}, "0:"),
    ({"a": "b"}, "1:1:a1:b"),
    ({"key": "", "": "value"}, "2:3:key0:0:5:value"),
    ({"a:1": "2:b", "1": ":"}, "2:3:a:13:2:b1:11::"),
    ({"größe": "1:ü"}, "1:5:größe3:1:ü"),
    ({"🐘": "a🐘b"}, "1:2:🐘4:a🐘b"),  # Java counts an elephant as two
]


@pytest.mark.parametrize("properties, text", TEXTS)
def test_properties_are_written_as_java_does_and_read_back(properties, text):
    assert encode(properties) == text
    assert decode(text) == properties
    assert list(decode(text)) == list(properties)


def test_no_text_and_null_are_no_properties():
    assert decode(None) == decode("") == {}
    assert decode("2:1:a-1:1:b1:c") == {"b": "c"}


@pytest.mark.parametrize(
    "text",
    ["x", "1", "1:", "1:1:a", "1:1:a2:b", "a:1:a1:b", "1:1:a1", "2:1:a1:b", "1:1:🐘0:", ":"],
)
def test_another_text_is_refused_by_name(text):
    with pytest.raises(FormatError, match="StringableMap"):
        decode(text)
