"""Finding a Java: scripts answer as a Java would."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from acidsql import java

GOOD = "java.base@17.0.15\njdk.incubator.vector@17.0.15"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Makes Javas; those of the machine are hidden."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(java, "_PLACES", ())

    def make(name: str, modules: str, code: int = 0) -> Path:
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        script = home / "bin" / "java"
        script.write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{modules}\nEND\nexit {code}\n")
        script.chmod(0o755)
        return home

    return make


def test_a_java_says_what_it_is(place):
    found = java.probe(place("jdk", GOOD))
    assert (found.version, found.has_vector, found.is_usable) == (17, True, True)
    assert not java.probe(place("old", "java.base@11.0.2\njdk.incubator.vector@11")).is_usable
    assert not java.probe(place("trimmed", "java.base@21.0.2")).is_usable
    assert java.probe(place("eight", "Unrecognized option: --list-modules", 1)) is None
    assert java.probe(place("no-java", "") / "missing") is None


def test_the_first_usable_one_is_taken(place, tmp_path, monkeypatch):
    directory = tmp_path / ".java"
    assert java.find_java(directory) is None
    ours = place(".java/jdk-17", GOOD)
    assert java.find_java(directory).home == ours
    on_path = place("system", GOOD)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(on_path / "bin" / "java")
    assert java.find_java(directory).home == on_path
    monkeypatch.setenv("JAVA_HOME", str(place("trimmed", "java.base@21")))
    assert java.find_java(directory).home == on_path
    monkeypatch.setenv("JAVA_HOME", str(place("chosen", GOOD)))
    assert java.find_java(directory).home.name == "chosen"


def test_one_is_fetched_where_there_is_none(place, tmp_path, monkeypatch, capsys):
    def install(version: str, *, path: str) -> None:
        place(f"fetched/jdk-{version}", GOOD)

    monkeypatch.setattr(
        java.importlib, "import_module", lambda name: SimpleNamespace(install=install)
    )
    assert java.install_java(tmp_path / "fetched").home == tmp_path / "fetched" / "jdk-17"
    assert "fetching" in capsys.readouterr().err


def test_without_any_it_says_what_to_do(place, monkeypatch, capsys):
    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(java.importlib, "import_module", refuse)
    assert java.main() == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "sudo apt-get install openjdk-17-jre-headless" in told.err
    with pytest.raises(SystemExit, match="JAVA_HOME"):
        java.use_java()
