"""The settings of object stores, as Hadoop has them.

``hadoop_conf`` reads them; ``s3_options``, ``gcs_options`` and ``azure_options`` make options of
them for Arrow. ``store_options`` chooses by a location's scheme.

This package must not open a connection. Read ``store_options`` first.
"""
