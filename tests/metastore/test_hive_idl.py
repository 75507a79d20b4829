"""The classes that are made from Hive's interface file."""

import hashlib

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


FROZEN = "f8b06365b73595e1"


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
