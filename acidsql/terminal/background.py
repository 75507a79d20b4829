"""Answers to questions that may take long, asked in the background."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from acidsql.plan.analysis.lower import no_log

WAIT_S = 0.2  # a person does not notice a shorter pause
Key = tuple[str, ...]
Ask = Callable[[], list[str]]
Questions = Mapping[Key, Ask]


class BackgroundAnswers:
    """Asks questions whose answers are lists of names, and never waits long for them.

    Each question is asked by a thread of its own, so that one that hangs delays no other one. While
    it is not answered, it is not asked again.

    Args:
        wait_s: The longest time that a call of ``answers`` waits.
    """

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._open: dict[Key, threading.Event] = {}  # set at the end, also if asking failed
        self._answers: dict[Key, list[str]] = {}

    def answers(self, questions: Questions) -> list[str]:
        """Return the names of all answers, one after another. Of each question it is the new answer
        if it comes in time, else the last one; none if there was none. An answer that comes too
        late is the last one of the next call.

        Args:
            questions: What tells a question from others → what finds its answer. Another thread
                calls this; an error counts as no answer.
        """
        deadline = time.monotonic() + self._wait_s
        for answered in [self._begin(key, ask) for key, ask in questions.items()]:
            answered.wait(max(0.0, deadline - time.monotonic()))
        with self._lock:
            return [name for key in questions for name in self._answers.get(key, ())]

    def prepare(self, questions: Questions) -> None:
        """Ask questions without waiting, so that a later call of ``answers`` has last answers."""
        for key, ask in questions.items():
            self._begin(key, ask)

    def _begin(self, key: Key, ask: Ask) -> threading.Event:
        """Ask a question in a new thread, unless this is done already. Return the event of its
        end."""
        with self._lock:
            if (answered := self._open.get(key)) is not None:
                return answered
            answered = self._open[key] = threading.Event()
        # A daemon: the process may end while a store does not answer.
        threading.Thread(
            target=self._find, args=(key, ask, answered), name="acidsql names", daemon=True
        ).start()
        return answered

    def _find(self, key: Key, ask: Ask, answered: threading.Event) -> None:
        """Find the answer to a question, and keep it."""
        names: list[str] | None = None
        try:
            with no_log():
                names = ask()
        except Exception:  # the session is closed, or its store or Spark fails
            names = None
        finally:
            with self._lock:
                del self._open[key]
                if names is not None:
                    self._answers[key] = names
            answered.set()
