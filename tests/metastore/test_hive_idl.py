"""The classes that are made from Hive's interface file."""

import hashlib
import re
from collections import defaultdict
from pathlib import Path

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from thrift.protocol.TBase import TBase
from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocol, TCompactProtocolAccelerated
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from acidsql.metastore.hive.wire.idl import hive, methods

STRUCTS = {
    name: made
    for name, made in sorted(vars(hive).items())
    if isinstance(made, type) and issubclass(made, TBase)
}
SIMPLE = {
    TType.BOOL: True, TType.BYTE: 7, TType.I16: 300, TType.I32: -70000, TType.I64: 2**62,
    TType.DOUBLE: 0.5,
}  # fmt: skip


def value(kind, inner, depth=3):
    """Some value of a type; structs within structs end at some depth."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    if kind == TType.STRING:
        return b"\x00\xff" if inner == "BINARY" else "größer\n"
    if kind == TType.STRUCT:
        return filled(inner[0], depth - 1)
    if kind == TType.MAP:
        key = value(*inner[:2], depth) if inner[0] != TType.LIST else None
        return {} if key is None else {key: value(*inner[2:4], depth)}
    items = [value(*inner[:2], depth)]
    return set(items) if kind == TType.SET else items


def filled(made, depth=3):
    fields = [one for one in made.thrift_spec if one]
    return made(**{one[2]: value(one[1], one[3], depth) for one in fields if depth > 0})


@pytest.mark.parametrize("name", STRUCTS)
@pytest.mark.parametrize(
    ("slow", "fast"),
    [
        (TBinaryProtocol, TBinaryProtocolAccelerated),
        (TCompactProtocol, TCompactProtocolAccelerated),
    ],
    ids=["binary", "compact"],
)
def test_every_struct_survives_both_codecs(name, slow, fast):
    wanted = filled(STRUCTS[name])
    for writer, reader in ((slow, fast), (fast, slow)):
        memory = TMemoryBuffer()
        wanted.write(writer(memory))
        found = STRUCTS[name]()
        found.read(reader(TMemoryBuffer(memory.getvalue())))
        assert found == wanted


def test_defaults_are_hives():
    assert hive.CommitTxnRequest().exclWriteEnabled is True
    assert hive.LockComponent().operationType == hive.DataOperationType.UNSET
    assert hive.OpenTxnRequest().txn_type == hive.TxnType.DEFAULT
    assert hive.Table().writeId == -1


def test_field_ids_stay_as_hive_numbered_them():
    """A changed id would be another field at the server, silently."""
    some = {
        hive.LockRequest: {1: "component", 2: "txnid", 3: "user", 4: "hostname", 5: "agentInfo"},
        hive.AddDynamicPartitions: {1: "txnid", 2: "writeid", 6: "operationType"},
        hive.CommitTxnRequest: {1: "txnid", 5: "keyValue", 6: "exclWriteEnabled", 7: "txn_type"},
        hive.Database: {3: "locationUri", 10: "managedLocationUri"},
        hive.NotificationEventRequest: {1: "lastEvent", 2: "maxEvents", 3: "eventTypeSkipList"},
        hive.NotificationEvent: {1: "eventId", 3: "eventType", 4: "dbName", 5: "tableName"},
        hive.AlterTableRequest: {4: "table", 6: "writeId", 7: "validWriteIdList"},
    }
    for made, fields in some.items():
        assert {n: made.thrift_spec[n][2] for n in fields} == fields
    text = repr([
        [name, [one and one[:3] for one in made.thrift_spec]] for name, made in STRUCTS.items()
    ])  # fmt: skip
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert digest[:16] == FROZEN, "the structs have changed: look at each, then change FROZEN"


FROZEN = "3590ffaca7979a31"


def test_a_wrong_field_is_refused():
    with pytest.raises(TypeError, match="txnId"):
        hive.CommitTxnRequest(txnId=1)


def test_methods_know_what_they_return_and_throw():
    assert methods["commit_txn"].returns is False
    assert methods["commit_txn"].throws == ("o1", "o2")
    assert methods["get_open_txns"].returns is True


def test_a_constraint_that_the_server_refuses_is_an_error_that_is_known():
    """An exception that the interface file does not declare would be taken for success."""
    for kind in ("not_null", "default", "check"):
        assert methods[f"add_{kind}_constraint"].throws == ("o1", "o2")


INTERFACES = Path(__file__).with_name("hive_interfaces")
VERSIONS = [path.stem for path in sorted(INTERFACES.iterdir())]
COLLECTIONS = {"list": TType.LIST, "set": TType.SET, "map": TType.MAP}


class Interface:
    """What the classes in a release of Hive say, a line for each value of an enum (``enum NAME
    VALUE=NUMBER``) and each field (``struct NAME ID:REQUIREDNESS TYPE FIELD``)."""

    def __init__(self, version):
        self.enums, self.structs = defaultdict(dict), defaultdict(dict)
        for line in (INTERFACES / f"{version}.txt").read_text().splitlines():
            kind, name, *words = line.split(" ")
            if kind == "enum":
                value, number = words[0].split("=")
                self.enums[name][value] = int(number)
            else:
                (place, required), type_text, field = words[0].split(":"), *words[1:]
                self.structs[name][int(place)] = (field, self._kind(type_text), required)

    def _kind(self, type_text):
        """The number of a type, as Thrift has it; enums are told from structs by their names."""
        collection = type_text.partition("<")[0]
        if collection in COLLECTIONS:
            return COLLECTIONS[collection]
        if type_text == "binary":
            return TType.STRING
        return int(type_text[1:]) if re.fullmatch(r"t\d+", type_text) else type_text

    def fields(self, name):
        """The fields of a struct: number → name and type."""
        return {
            place: (field, self._number(kind))
            for place, (field, kind, _) in self.structs[name].items()
        }

    def _number(self, kind):
        if isinstance(kind, int):
            return kind
        return TType.I32 if kind in self.enums else TType.STRUCT

    def required(self, name):
        return {
            field for field, _, required in self.structs[name].values() if required == "required"
        }


def own_fields(made):
    return {one[0]: (one[2], one[1]) for one in made.thrift_spec if one}


@pytest.mark.parametrize("version", VERSIONS)
def test_structs_and_enums_are_those_of_each_version_of_hive(version):
    """A version may lack a field, which it then skips. Hive 4 has all fields of acidsql's."""
    interface = Interface(version)
    known = [name for name in STRUCTS if name in interface.structs]
    assert len(known) > 60
    for name in known:
        own, theirs = own_fields(STRUCTS[name]), interface.fields(name)
        common = own.keys() & theirs.keys() if version.startswith("3") else own.keys()
        assert {place: theirs.get(place) for place in common} == {
            place: own[place] for place in common
        }, name
        missing = interface.required(name) - {field for field, _ in own.values()}
        assert not missing, (name, missing)
    for name, values in interface.enums.items():
        own_values = vars(getattr(hive, name))
        assert {value: own_values.get(value) for value in values} == values, name


@pytest.mark.parametrize("version", [version for version in VERSIONS if version[0] != "3"])
def test_calls_take_return_and_throw_what_each_version_of_hive_says(version):
    interface = Interface(version)
    known = [name for name in methods if f"{name}_args" in interface.structs]
    assert len(known) > 50
    for name in known:
        method = methods[name]
        arguments = own_fields(method.arguments)
        theirs = interface.fields(f"{name}_args")
        assert {place: kind for place, (_, kind) in arguments.items()} == {
            place: theirs[place][1] for place in arguments
        }, name
        results = {place: kind for place, (_, kind) in own_fields(method.result).items()}
        assert results == {
            place: kind for place, (_, kind) in interface.fields(f"{name}_result").items()
        }, name
