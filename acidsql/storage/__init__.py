"""Directories of ORC ⇄ DataFrames."""
