"""Names of the API in Python: `tokenMint` is `token_mint`, and `from` is `from_`."""

from __future__ import annotations

import keyword
import re
from functools import lru_cache

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=4096)
def python_name(name: str) -> str:
    """The name of a field, a parameter or an operation in this package."""
    plain = _HUMP.sub("_", name).lower()
    return f"{plain}_" if keyword.iskeyword(plain) else plain
