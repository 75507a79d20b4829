"""Spark's own calls, for ACID tables: ``connect(spark, extend=True)``.

What is taken over, by class of PySpark, classic and Connect:

==============  ====================================  ==========================================
class           names                                 what the door gives, in the session
==============  ====================================  ==========================================
SparkSession    ``sql``, ``table``                    the rows or counts, ``calls.py``
SparkSession    ``read``                              a reader with ``table``, ``reader.py``
SparkSession    ``catalog``                           a catalog that knows them, ``catalog.py``
DataFrame       ``write``                             ``insertInto``, ``saveAsTable``: ``writer.py``
DataFrame       ``writeStream``                       refusals: ``stream_writer.py``, ``batches.py``
DataFrame       ``writeTo``                           its six actions, ``writer_v2.py``
DataFrame       ``mergeInto``                         the builder of ``acid.merge_into``
==============  ====================================  ==========================================

``doors.py`` puts a *door* in the place of each name. The pandas API on Spark goes through the same
doors. A door asks ``registry.py`` whose the session is: other sessions, and acidsql itself, get
what was there before. So does each call that concerns no ACID table.

The doors stand on classes, because PySpark makes several objects of one session: a DataFrame may
hold another than the caller's ``spark``. Which session an object belongs to decides.

This package must not know what a statement means: each call is a statement, or a method of
``Session``. Read ``doors`` first.
"""
