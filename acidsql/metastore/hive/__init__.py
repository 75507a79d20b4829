"""A Hive Metastore as acidsql's store, over Thrift. No other package imports Thrift.

``wire/`` has the calls, from ``hive_metastore.thrift`` (Hive's interface) to ``server`` (which call
which server has). ``locking/`` and ``catalog/`` have parts on top of it, as have the modules here;
``commit`` tells how a transaction commits. A part gets the parts that it needs when it is made, in
``parts``. ``store`` is the whole ``Metastore``: it delegates to the parts.

Words of Thrift must not leave this package. It must not be imported by anything but
``api/opening`` and ``terminal/hive_check``, and only when a session asks for it, because Thrift is
an optional dependency. Read ``wire/own_txns`` first, then ``parts`` and ``commit``.
"""
