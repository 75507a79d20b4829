"""Runs cells in IPython's shell, and notes what each shows: ``notebook_cells.py CELLS OUTPUTS``.

Both files are JSON: a list of texts, and for each cell a list of outputs as notebooks have them. As
in Jupyter's kernel, what the process and its JVM write to the descriptors 1 and 2 is output.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import RichOutput, capture_output


@contextmanager
def descriptors(outputs: list[dict[str, Any]]) -> Iterator[None]:
    """Append what the block writes to the descriptors 1 and 2 to the outputs."""
    files = {number: tempfile.TemporaryFile() for number in (1, 2)}  # noqa: SIM115
    before = {number: os.dup(number) for number in files}
    for number, file in files.items():
        os.dup2(file.fileno(), number)
    try:
        yield
        time.sleep(0.2)  # a JVM's lines come through a thread
    finally:
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(before[number], number)
            files[number].seek(0)
            if text := files[number].read().decode(errors="replace"):
                outputs.append({"output_type": "stream", "name": name, "text": text})


def rich(output: RichOutput) -> dict[str, Any]:
    return {"output_type": "display_data", "data": output.data, "metadata": {}}


def run_cell(shell: InteractiveShell, source: str) -> list[dict[str, Any]]:
    outputs: list[dict[str, Any]] = []
    with descriptors(outputs), capture_output() as captured:
        result = shell.run_cell(source)
    for name in ("stdout", "stderr"):
        if text := getattr(captured, name):
            outputs.append({"output_type": "stream", "name": name, "text": text})
    outputs += map(rich, captured.outputs)
    if result.result is not None:
        data, _ = shell.display_formatter.format(result.result)
        outputs += [rich(RichOutput(data=data))] if data else []
    return outputs


if __name__ == "__main__":
    cells, target = Path(sys.argv[1]), Path(sys.argv[2])
    notebook_shell = InteractiveShell.instance()
    shown = [run_cell(notebook_shell, source) for source in json.loads(cells.read_text())]
    target.write_text(json.dumps(shown))
