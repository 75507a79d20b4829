"""AUTO CDC: one statement in several steps.

``auto_cdc`` runs it. ``records`` judges the source's records, ``strategies`` decides about them, by
queries that ``evaluation`` evaluates once, and ``tombstones`` forgets old deletes.

This package uses the phases of ``dml/``. It must not decide which record wins: ``plan/cdc`` does.
Read ``auto_cdc`` first.
"""
