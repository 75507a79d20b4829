"""The version, which dbt shows: that of the package acidsql."""

from acidsql import __version__ as version  # noqa: F401  # dbt imports this name
