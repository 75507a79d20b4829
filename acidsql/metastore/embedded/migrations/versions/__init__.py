"""The revisions, in order. What stands in one is never changed: stores were made by it."""
