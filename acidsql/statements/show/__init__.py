"""SHOW and DESCRIBE, and which statements wait for which.

``shows`` answers SHOW, ``described`` DESCRIBE, and ``waiting`` what waits for a lock.

This package must not change anything. Read ``shows`` first.
"""
