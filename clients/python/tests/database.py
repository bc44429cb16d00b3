"""The database of a demo, for rows that no venue would send on request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import Demo

psycopg = pytest.importorskip("psycopg")


def connect(demo: Demo) -> Any:
    """A connection that commits each statement."""
    connection = json.loads((demo.data_dir / "demo" / "postgres" / "connection.json").read_text())
    return psycopg.connect(
        host="127.0.0.1",
        port=connection["port"],
        user="oddswire",
        dbname="oddswire",
        password=connection["password"],
        autocommit=True,
    )
