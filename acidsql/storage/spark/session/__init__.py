"""A Spark session: its JVM, its settings, its jobs and its Python workers.

``jvm`` asks the JVM, or a server of Spark Connect. ``jobs`` names, watches and cancels jobs;
``python_workers`` sends the code that tasks need; ``data_source`` registers the format ``acidsql``;
``store_conf`` hands keys of object stores on; ``quiet`` starts a Spark that writes errors only.

This package must not compose queries. Read ``jvm`` first.
"""
