"""A Hive Metastore as acidsql's store, over Thrift. No other package imports Thrift.

``hive_metastore.thrift`` (Hive's interface) ← ``idl`` (its classes) ← ``connection`` (one server)
← ``client`` (calls, repeats, errors); ``address`` (the URL).

Words of Thrift must not leave this package. It must not be imported by anything but ``opening``,
and only when a session asks for it, because Thrift is an optional dependency. Read ``client``
first.
"""
