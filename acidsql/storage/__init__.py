"""Directories of ORC files ⇄ DataFrames: listing, scan, write, publish, ORC's footers."""
