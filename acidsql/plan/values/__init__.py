"""Which value may go into which column, and how composed text keeps the user's positions.

``assignment`` has the rules of store assignment, ``struct_fields`` those inside of structs,
``checks`` the CHECK constraints. ``sqltext`` maps each place of composed text to the user's text.

This package must not know statements: it gets expressions and types. Read ``assignment`` first.
"""
