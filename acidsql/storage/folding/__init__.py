"""The job of a compaction: it merges the events of many directories into few.

``plan`` says what to do in one table or partition, ``newest_run`` which deltas an automatic minor
compaction takes. ``compact`` runs the job and puts the result into place. ``fold`` is a task: the
events of one bucket id, merged by ``event_merge``.
``rebalance`` gives rows new bucket ids and row ids. ``stream_reads`` and ``stream_changes`` are the
tasks of a stream's batch.

This package changes no snapshot's rows (I10). It must not know the queue of compactions, nor delete
anything: ``acidsql/compaction`` does. Read ``plan`` and ``compact`` first.
"""
