"""A wrapper around the real store that fails on demand."""

from acidsql.errors import MetastoreError


class Unreliable:
    """Passes every call on to the real store, except calls and replies that a test wants to lose.

    ``lose_call[name] = n``: the next n calls of this method never arrive. ``lose_reply[name] = n``:
    the next n calls are done, and their replies are lost.
    """

    def __init__(self, store):
        self.store, self.lose_call, self.lose_reply, self.calls = store, {}, {}, []

    def __getattr__(self, name):
        method = getattr(self.store, name)
        if not callable(method):
            return method

        def call(*args, **keywords):
            self.calls.append(name)
            self._fail(self.lose_call, name)
            answer = method(*args, **keywords)
            self._fail(self.lose_reply, name)
            return answer

        return call

    @staticmethod
    def _fail(losses, name):
        if losses.get(name, 0) > 0:
            losses[name] -= 1
            raise MetastoreError(f"the line went dead at {name}")
