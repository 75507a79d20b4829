"""The parts of the reference that the code itself says: settings, errors, grammar …

A page has ``<!-- generated: NAME -->`` where the text of ``PARTS[NAME]`` belongs, and below it one
line in italics for readers of the file itself. The build of the site puts the text in the place of
both, so that the pages cannot say anything else than the code.
"""

from __future__ import annotations

import ast
import html
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = re.compile(r"<!-- generated: (\w+) -->\n\*[^\n]+\*\n")


def filled(markdown: str) -> str:
    """The page with the generated parts in their places."""
    return PLACE.sub(lambda found: PARTS[found[1]]() + "\n", markdown)


def _table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [titles, tuple("---" for _ in titles), *rows]
    table = "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )
    return f'<div class="reference" markdown>\n\n{table}\n\n</div>'


def settings() -> str:
    """All settings."""
    from acidsql.settings import known_settings

    rows = [(f"`{one.name}`", f"`{one.default}`", one.doc) for one in known_settings()]
    return _table(("setting", "default", "what it is for"), rows)


def properties() -> str:
    """All table properties."""
    from acidsql.acid.properties import TABLE_PROPERTIES
    from acidsql.storage.orc.options import PROPERTIES

    rows = [
        (f"`{one.name}`", f"`{one.default}`" if one.default else "", one.doc)
        for one in (*TABLE_PROPERTIES, *PROPERTIES)
    ]
    return _table(("property", "default", "what it is for"), rows)


def commands() -> str:
    """The commands of ``acidsql``, in the words of ``acidsql COMMAND --help``."""
    import click

    from acidsql.terminal.cli import main

    rows = []
    for name, command in sorted(main.commands.items()):
        words = [name]
        for parameter in command.params:
            if isinstance(parameter, click.Argument):
                words.append(parameter.make_metavar(click.Context(command)))
        first = (command.help or "").partition("\n\n")[0]
        rows.append((f"`{' '.join(words)}`", " ".join(first.split())))
    return _table(("command", "what it does"), rows)


def findings() -> str:
    """What ``acid.check`` can find, the worst first."""
    from acidsql.acid.findings import CONDITIONS

    rows = [(f"`{name}`", severity, advice) for name, (severity, advice) in CONDITIONS.items()]
    return _table(("finding", "severity", "what to do"), rows)


def options() -> str:
    """The options of ``%%acidsql``: the list in the docstring of its module."""
    tree = ast.parse((ROOT / "acidsql" / "terminal" / "magic.py").read_text("utf-8"))
    listed = re.search(r"^\* .*?(?=\n\n)", f"{ast.get_docstring(tree)}\n\n", re.M | re.S)
    assert listed is not None
    return re.sub(r"^\* ", "- ", listed[0].replace("``", "`"), flags=re.MULTILINE)


# ── grammar ──────────────────────────────────────────────────────────────────────────────────

_SECTION = re.compile(r"^\(\* ── (.+?) ── \*\)$", re.MULTILINE)
_WORDS = re.compile(r"\(\*.*?\*\)|'[^']*'|\?.*?\?|\b[a-z][a-z_]*\b", re.DOTALL)


def grammar() -> str:
    """``grammar/dml.ebnf``: sections, and links from each name to its production."""
    text = (ROOT / "grammar" / "dml.ebnf").read_text("utf-8")
    known = set(re.findall(r"^(\w+) =", text, re.MULTILINE))
    first, *rest = _SECTION.split(text)
    intro, _, start = first.partition("*)")
    parts = [" ".join(re.sub(r"^\(\*", "", intro).split()).partition(" The tests read")[0]]
    for title, body in [("a statement", start), *zip(rest[::2], rest[1::2], strict=True)]:
        heading = title.partition(":")[0].partition(";")[0]
        parts += [
            f"### {heading[0].upper()}{heading[1:]}",
            f"<pre class=grammar>{_linked(body, known)}</pre>",
        ]
    return "\n\n".join(parts)


def _linked(text: str, known: set[str]) -> str:
    """Productions as HTML without empty lines, which would end the block of HTML in Markdown."""

    def word(found: re.Match[str]) -> str:
        name = found[0]
        if name not in known:
            return html.escape(name, quote=False)
        after = found.string[found.end() : found.end() + 2]
        starts = found.start() == 0 or found.string[found.start() - 1] == "\n"
        if starts and after == " =":
            return f'<b id="{name}">{name}</b>'
        return f'<a href="#{name}">{name}</a>'

    pieces, at = [], 0
    body = text.strip("\n")
    for found in _WORDS.finditer(body):
        pieces += [html.escape(body[at : found.start()], quote=False), word(found)]
        at = found.end()
    pieces.append(html.escape(body[at:], quote=False))
    return re.sub(r"\n\s*\n", "\n&#8203;\n", "".join(pieces))


# ── errors ───────────────────────────────────────────────────────────────────────────────────

_CONDITION = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+(\.[A-Z0-9_]+)*|TXN_OPEN")
_SQLSTATE = re.compile(r"(?=[A-Z]*[0-9])[0-9A-Z]{5}")
_WORD = re.compile(r"[A-Z]+(_[A-Z]+)+")
_LEFT_OUT = "…"
_MAKERS = {"raise_told": "ConstraintError"}  # makes SQL that raises it in a task


@dataclass(frozen=True)
class Raised:
    """One place in the code that makes an error.

    Attributes:
        condition: Its condition; a part that the code computes is ``…``.
        sqlstate: Its SQLSTATE; empty if it is that of the error's class.
        kind: The name of the error's class; empty if it is not said there.
        message: Its message, with ``…`` for values.
    """

    condition: str
    sqlstate: str
    kind: str
    message: str


def errors() -> str:
    """All conditions, each with its SQLSTATE, class and messages."""
    from acidsql import errors as tree

    classes = {name: one for name, one in vars(tree).items() if isinstance(one, type)}
    by_condition: dict[str, list[Raised]] = {}
    for one in raised():
        by_condition.setdefault(one.condition, []).append(one)
    rows = []
    for condition, places in sorted(by_condition.items()):
        kinds = sorted({one.kind for one in places if one.kind in classes})
        states = {one.sqlstate for one in places if one.sqlstate} or {
            classes[kind].sqlstate for kind in kinds
        }
        says = dict.fromkeys(one.message for one in places if one.message)
        if not says and kinds:
            says = {" ".join((classes[kinds[0]].__doc__ or "").partition("\n\n")[0].split()): None}
        rows.append((
            f"`{condition}`", ", ".join(sorted(states)), ", ".join(f"`{kind}`" for kind in kinds),
            "<br>".join(html.escape(one, quote=False) for one in list(says)[:2]),
        ))  # fmt: skip
    return _table(("condition", "SQLSTATE", "class", "what it says"), rows)


def classes() -> str:
    """The tree of the classes of errors, from their module's docstring."""
    from acidsql import errors as tree

    lines = (tree.__doc__ or "").split("::\n")[1].strip("\n").splitlines()
    end = next((i for i, line in enumerate(lines) if line and not line.startswith("    ")), None)
    return "\n".join(["```text", *(line[4:] for line in lines[:end]), "```"]).replace(
        "\n\n```", "\n```"
    )


def raised() -> Iterator[Raised]:
    """Every place in the code that makes an error, and every class of errors."""
    modules = [
        ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "acidsql").rglob("*.py"))
    ]
    everywhere = {name: value for tree in modules for name, value in _constants(tree).items()}
    for tree in modules:
        yield from _Module(tree, everywhere).raised()


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """The names that a module gives to values at its top."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = node.value
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    names = [one.id for one in target.elts if isinstance(one, ast.Name)]
                    found.update(zip(names, node.value.elts, strict=False))
    return found


def _defaults(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """What a function takes if a call does not say it, and the SQLSTATE that it always gives."""
    found = {
        node.arg: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.keyword) and node.arg == "sqlstate"
    }
    names = [one.arg for one in function.args.args]
    values = function.args.defaults
    found |= zip(names[len(names) - len(values) :], values, strict=True)
    return found


class _Module:
    """One module, whose calls are searched for conditions."""

    def __init__(self, tree: ast.Module, everywhere: Mapping[str, ast.expr]) -> None:
        self._tree, self._known = tree, {**everywhere, **_constants(tree)}
        functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
        self._functions = {one.name: one for one in functions}
        self._around = {node: one for one in functions for node in ast.walk(one)}

    def raised(self) -> Iterator[Raised]:
        """All places of the module."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ClassDef):
                yield from self._of_class(node)
            elif isinstance(node, ast.Call):
                yield from self._of_call(node)
            elif isinstance(node, ast.Tuple) and node.elts:
                yield from self._of_tuple(node)

    def _of_class(self, node: ast.ClassDef) -> Iterator[Raised]:
        """A class of errors: its condition is that of all its errors that say no other."""
        said = {
            target.id: self._text(one.value)
            for one in node.body if isinstance(one, ast.Assign)
            for target in one.targets if isinstance(target, ast.Name)
        }  # fmt: skip
        if said.get("condition"):
            words = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
            yield Raised(said["condition"], said.get("sqlstate", ""), node.name, words)

    def _of_call(self, node: ast.Call) -> Iterator[Raised]:
        """A call of a class of errors, or of a function of the module that makes one."""
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        made = self._functions.get(name)
        given = {one.arg: one.value for one in node.keywords if one.arg}
        kind = _MAKERS.get(name, name)
        if made is not None:
            given = {**_defaults(made), **given}
            given |= dict(zip((one.arg for one in made.args.args), node.args, strict=False))
            kind = _MAKERS.get(name) or self._kind(made)
        message = self._message([*node.args, *given.values()])
        state = self._text(given.get("sqlstate"))
        conditions = self._texts(given.get("condition")) + self._completed(made, given)
        for condition in conditions:
            if _CONDITION.fullmatch(condition):
                yield Raised(condition, state, kind, message)
        for condition, other in self._pairs(node.args):
            yield Raised(condition, other, kind, message)

    def _of_tuple(self, node: ast.Tuple) -> Iterator[Raised]:
        """A row of a table of errors."""
        kind = self._kind(self._around[node]) if node in self._around else ""
        for condition, state in self._pairs(node.elts):
            yield Raised(condition, state, kind, self._message(node.elts))
        first = self._text(node.elts[0])
        if "." in first and _CONDITION.fullmatch(first):
            yield Raised(first, "", kind, self._message(node.elts))

    def _completed(self, made: ast.FunctionDef | None, given: Mapping[str, ast.expr]) -> list[str]:
        """The condition that a function puts together of a text that it is given."""
        found = []
        for node in ast.walk(made) if made is not None else ():
            if isinstance(node, ast.keyword) and node.arg == "condition":
                start, name = self._start(node.value)
                if name in given:
                    found += [start + end for end in self._ends(given[name])]
        return found

    def _ends(self, node: ast.expr) -> list[str]:
        """What the text can be; all words in capitals of the function around, if it is a loop's."""
        if found := self._texts(node):
            return found
        around = ast.walk(self._around[node]) if node in self._around else ()
        return [text for one in around if (text := self._text(one)) and _WORD.fullmatch(text)]

    def _start(self, node: ast.expr) -> tuple[str, str]:
        """The known start of ``f"FEATURE.{name}"``, and the name."""
        if isinstance(node, ast.JoinedStr) and len(node.values) == 2:
            start, value = node.values
            if isinstance(value, ast.FormattedValue) and isinstance(value.value, ast.Name):
                return self._text(start), value.value.id
        return "", ""

    def _pairs(self, nodes: list[ast.expr]) -> Iterator[tuple[str, str]]:
        """Conditions that are followed by their SQLSTATE."""
        texts = [self._text(one) for one in nodes]
        for condition, state in itertools.pairwise(texts):
            if _CONDITION.fullmatch(condition) and _SQLSTATE.fullmatch(state):
                yield condition, state

    def _kind(self, function: ast.FunctionDef) -> str:
        """The class of the errors that a function makes."""
        for node in ast.walk(function):
            name = (
                node.func.id
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                else ""
            )
            if name.endswith("Error") or name in _MAKERS:
                return _MAKERS.get(name, name)
        return ""

    def _message(self, nodes: list[ast.expr]) -> str:
        texts = [" ".join(text.split()) for one in nodes for text in self._texts(one)]
        said = [one for one in texts if " " in one and not one.startswith("concat(")]
        return max(said, key=len, default="")

    def _texts(self, node: ast.expr | None) -> list[str]:
        """All texts that an expression can have, as far as the function around it says them."""
        start, name = "", ""
        if isinstance(node, ast.Name):
            name = node.id
        elif node is not None:
            start, name = self._start(node)
        assigned = [
            one.value
            for one in (ast.walk(self._around[node]) if name and node in self._around else ())
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == name
        ]
        found = []
        for one in assigned or [node]:
            branches = (one.body, one.orelse) if isinstance(one, ast.IfExp) else (one,)
            found += [self._text(branch) for branch in branches]
        return [(start if assigned else "") + text for text in found if text]

    def _text(self, node: ast.expr | None) -> str:
        """The text of an expression, with ``…`` for what is known only when it runs."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else ""
        if isinstance(node, ast.JoinedStr):
            return "".join(
                one.value if isinstance(one, ast.Constant) else _LEFT_OUT for one in node.values
            )
        if isinstance(node, ast.Name):
            return self._text(self._known.get(node.id)) if node.id.upper() == node.id else ""
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            whole = self._known.get(node.value.id) if isinstance(node.value, ast.Name) else None
            return self._text(whole.elts[node.slice.value]) if isinstance(whole, ast.Tuple) else ""
        return ""


PARTS: Mapping[str, Callable[[], str]] = {
    "settings": settings,
    "properties": properties,
    "commands": commands,
    "findings": findings,
    "options": options,
    "grammar": grammar,
    "classes": classes,
    "errors": errors,
}
