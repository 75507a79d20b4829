"""Pages as a real browser lays them out: Chromium without a window."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FOUND = re.compile(r'<pre id="found">(.*?)</pre>', re.S)
# Nothing is fetched: a browser on a machine without a network would wait for its own servers.
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip


def missing() -> str | None:
    """Why there is no browser here; None: there is one."""
    if _browser() is None:
        return f"no Chromium: looked for {', '.join(_NAMES)}; make servers, or apt-get install it"
    return None


def _browser() -> str | None:
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def ask(page: str, question: str, directory: Path, *, width: int = 900) -> Any:
    """The value of a JavaScript expression in a page of this width, in pixels, after its load."""
    script = f"""<script>addEventListener("load", () => {{
        const found = document.createElement("pre");
        found.id = "found";
        found.textContent = JSON.stringify({question});
        document.body.replaceChildren(found);
    }});</script>"""
    file = directory / "page.html"
    file.write_text(page + script, encoding="utf-8")
    done = _run(directory, f"--window-size={width},2000", "--dump-dom", file.as_uri())
    answer = _FOUND.search(done)
    assert answer is not None, done[-2000:]
    return json.loads(html.unescape(answer[1]))


def _run(directory: Path, *arguments: str) -> str:
    browser = _browser()
    assert browser is not None
    command = [browser, *_OPTIONS, f"--user-data-dir={directory / 'profile'}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
