"""Fixtures of the tests of files on disk."""

from __future__ import annotations

import pytest


@pytest.fixture
def put(tmp_path):
    """put("delta_1_1/bucket_00000", b"…") makes a file below the table's directory."""

    def make(path, data=b"x"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    return make
