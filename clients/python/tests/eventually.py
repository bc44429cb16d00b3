"""Waits for a state of a running service, which sends no event about it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LOOK_SECONDS = 0.2


def eventually(read: Callable[[], T], is_right: Callable[[T], object], seconds: float = 60) -> T:
    """
    The first value that is right.

    Raises:
        AssertionError: none came in time.
    """
    ends = time.monotonic() + seconds
    while True:
        value = read()
        if is_right(value):
            return value
        assert time.monotonic() < ends, f"after {seconds} s it is still {value!r}"
        time.sleep(LOOK_SECONDS)
