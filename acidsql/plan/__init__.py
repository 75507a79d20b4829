"""Bound statement → query of events → DataFrame of events."""
