"""Where a person types: the command line, the shell, the notebook's magic.

``cli`` has the commands, ``shell`` reads statements from a terminal, ``magic`` from notebook
cells. ``script`` knows where in a file or a cell a statement failed. ``render`` makes text and HTML
of rows, ``terminal`` prints them. ``completion`` knows the words that may follow, from ``keywords``
and from names that ``background`` asks for. ``progress`` tells what a statement does now, ``top``
what goes on in the metastore. ``hive_check`` looks at a Hive Metastore before anybody connects to
it.

This package must not decide what a statement means: it gives the text to ``api/``. Read ``cli``
first.
"""
