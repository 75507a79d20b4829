"""The pictures of the documentation, drawn from what acidsql itself has said and written.

``record.py`` runs statements, and keeps their output and the directories on the disk in
``facts.json``. ``draw.py`` draws ``docs/pictures/*.svg`` from these facts, without Spark. Each
picture has the colours of a light and of a dark page, and follows the reader's choice.

``make pictures`` does both. ``tests/test_pictures.py`` compares both with the code of today.
"""
