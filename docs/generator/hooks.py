"""MkDocs calls these functions: pages of the repository's root, generated parts, links."""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import reference

import acidsql

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
# What a reader of Delta Lake's, Iceberg's or Hive's documentation types into the search, and the
# pages that answer it. The theme's search values these words more than those of a text. It looks
# for words that begin as the question does: `mergeInto` here would put its page before the one of
# MERGE.
_SEARCH_WORDS = {
    "sql.md": ("insert", "update", "delete", "merge", "upsert", "replace where", "returning"),
    "tables.md": (
        "create table", "ctas", "partition", "bucket", "view", "database", "analyze", "statistics",
    ),
    "columns.md": ("alter table", "schema evolution", "add columns", "rename column"),
    "constraints.md": ("check", "not null", "default", "primary key"),
    "dataframes.md": ("DeltaTable", "pandas"),
    "spark-sql.md": ("saveAsTable", "DataFrameWriter", "writeTo", "spark.table"),
    "history.md": (
        "time travel", "versionAsOf", "timestampAsOf", "version", "restore", "undo", "rollback",
        "change data feed", "cdf", "describe history",
    ),
    "maintenance.md": (
        "optimize", "vacuum", "compact", "small files", "expire snapshots", "fsck", "msck repair",
    ),
    "compaction.md": ("compaction", "rewrite data files"),
    "transactions.md": ("begin", "commit", "rollback", "isolation", "lock", "concurrency"),
    "streams.md": ("structured streaming", "writeStream", "readStream", "foreachBatch", "kafka"),
    "replication.md": ("cdc", "apply changes", "debezium", "scd", "auto cdc"),
    "object-stores.md": ("s3", "gcs", "azure", "minio", "credentials"),
    "hive-metastore.md": ("hms", "thrift", "hive", "trino", "impala", "kerberos"),
    "moving.md": ("convert", "import", "migrate", "load data", "clone"),
    "settings.md": ("settings", "configuration", "properties", "tblproperties", "set"),
    "errors.md": ("error", "exception", "sqlstate"),
    "shell.md": ("cli", "command line", "shell", "terminal"),
    "notebook.md": ("jupyter", "notebook", "magic"),
    "health.md": ("monitoring", "describe detail", "health", "top"),
    "limits.md": ("limits", "restrictions", "unsupported"),
    "comparison.md": ("delta lake", "iceberg", "hudi", "comparison"),
}  # fmt: skip
# These pages name nearly every word, and answer few questions of a user.
_LESS_IMPORTANT = {"changelog.md": 0.1, "architecture.md": 0.05}
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")


def on_config(config: Any) -> Any:
    """Put the version into the header, and a link to the repository if it is known: from the
    environment variable ``ACIDSQL_REPOSITORY``, or as the URL of git's remote ``origin``."""
    config.site_name = f"{config.site_name} {acidsql.__version__}"
    if page := os.environ.get("ACIDSQL_REPOSITORY") or _origin_url():
        config.repo_url, config.repo_name = page, page.rstrip("/").rpartition("/")[2]
    return config


def _origin_url() -> str | None:
    """The page of git's remote ``origin``, or None if there is no remote on a web server."""
    command = ["git", "-C", str(reference.ROOT), "remote", "get-url", "origin"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # there is no git
        return None
    return web_page_of(done.stdout.strip())


def web_page_of(remote: str) -> str | None:
    """Return the web page of a remote of git, without a user's name or password in it. A path, and
    anything else that is no URL, gives None."""
    place = re.fullmatch(
        r"(?:https?://(?:[^@/]+@)?|(?:ssh://)?git@)([\w.-]+)[:/](.+?)(?:\.git)?/?", remote
    )
    return place and f"https://{place[1]}/{place[2]}"


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
    """Fill in what is generated; turn links between root and docs/ into links of the site; say
    what the search should find."""
    source = {place: name for name, place in _ROOT.items()}.get(page.file.src_uri)
    above = posixpath.dirname(source or f"docs/{page.file.src_uri}")

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(above, found[1]))
        place = _ROOT.get(target) or (f"{target}.txt" if target.startswith("examples/") else "")
        return place or target.removeprefix("docs/")

    if words := _SEARCH_WORDS.get(page.file.src_uri):
        page.meta["tags"] = list(words)
    if boost := _LESS_IMPORTANT.get(page.file.src_uri):
        page.meta["search"] = {"boost": boost}
    return _LINK.sub(moved, reference.filled(markdown))
