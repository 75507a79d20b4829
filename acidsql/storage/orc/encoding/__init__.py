"""The bytes of an ORC file: its footers, stripes and streams.

``protobuf`` reads messages, ``compression`` chunks, ``rle`` runs of integers; ``footer`` and
``stripe`` are the parts of a file.

This package must not know Hive's events. Read ``footer`` first.
"""
