"""``python -m acidsql`` is the command ``acidsql``."""

from acidsql.terminal.cli import main

main(prog_name="acidsql")
