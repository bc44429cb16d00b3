"""Server-sent events from bytes."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\n")


@dataclass(frozen=True)
class SseEvent:
    """An event of a stream of server-sent events."""

    type: str
    id: str
    """The id of the last event that had one."""
    data: str


class SseParser:
    """Splits a stream of server-sent events, however its bytes arrive."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest: list[str] = []
        self._id = ""
        self._type = ""
        self._data: list[str] = []

    def push(self, data: bytes) -> list[SseEvent]:
        """The events that these bytes complete."""
        text = self._decoder.decode(data)
        if "\n" not in text:
            self._rest.append(text)
            return []
        lines = _LINE_END.split("".join((*self._rest, text)))
        self._rest = [lines.pop()]
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: str) -> SseEvent | None:
        if line == "":
            event = SseEvent(self._type, self._id, "\n".join(self._data)) if self._data else None
            self._type = ""
            self._data = []
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            self._id = value
        elif name == "event":
            self._type = value
        elif name == "data":
            self._data.append(value)
        return None
