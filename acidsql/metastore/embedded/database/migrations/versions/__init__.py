"""The revisions, in order. A released revision is never changed: stores were made with it."""
