"""MkDocs calls these functions: pages of the repository's root, generated parts, links."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import reference

# The repository's files outside of docs/ that pages link to, and their places in the site.
_ROOT = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "LICENSE.txt",
    "grammar/dml.ebnf": "grammar/dml.ebnf.txt",
}
_STYLE = """
.md-grid { max-width: 80rem; }
.reference td:first-child { min-width: 17rem; }
.reference td:nth-child(3) code { white-space: nowrap; }
pre.grammar { white-space: pre-wrap; }
pre.grammar b { color: var(--md-accent-fg-color); }
"""
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")


def on_files(files: Files, config: Any) -> Files:
    """Add the files of the root, and the examples."""
    places = dict(_ROOT)
    for path in sorted((reference.ROOT / "examples").iterdir()):
        if path.suffix in (".py", ".ipynb"):
            places[f"examples/{path.name}"] = f"examples/{path.name}.txt"
    for source, place in places.items():
        files.append(File.generated(config, place, abs_src_path=str(reference.ROOT / source)))
    files.append(File.generated(config, "generator.css", content=_STYLE))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fill in what is generated; turn links between root and docs/ into links of the site."""
    source = {place: name for name, place in _ROOT.items()}.get(page.file.src_uri)
    above = posixpath.dirname(source or f"docs/{page.file.src_uri}")

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(above, found[1]))
        place = _ROOT.get(target) or (f"{target}.txt" if target.startswith("examples/") else "")
        return place or target.removeprefix("docs/")

    return _LINK.sub(moved, reference.filled(markdown))
