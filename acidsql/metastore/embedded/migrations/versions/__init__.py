"""The revisions, in order. A revision is never changed, because stores were made with it."""
