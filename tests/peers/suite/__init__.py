"""Cases of row-level SQL, and the answers of other engines to them.

Read ``case.py`` first. ``topics/`` has the cases, ``recorded/`` the answers of Delta Lake and of
Iceberg, and ``differences.py`` names the cases that acidsql answers in another way, with the
reasons. ``oracle.py`` records the answers (``make test-peers``).
"""
