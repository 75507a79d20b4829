"""``python -m acidsql`` is the command ``acidsql``."""

from acidsql.cli import main

main(prog_name="acidsql")
