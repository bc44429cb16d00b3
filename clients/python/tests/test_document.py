"""The package against the OpenAPI document of the server."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY

import oddswire
from oddswire import AsyncOddswire, Oddswire, errors
from oddswire.names import python_name

PACKAGE = Path(__file__).resolve().parents[1]
sys.path.append(str(PACKAGE / "scripts"))

from operations import call_of  # noqa: E402

CLIENTS: list[Any] = [Oddswire, AsyncOddswire]
ENDLESS = {"streamMarkets", "streamAccountEvents"}
"""Operations of `oddswire.streams`."""
NOT_THERE = ENDLESS if importlib.util.find_spec("oddswire.streams") is None else set[str]()


def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The operations of the document by id."""
    return {one["operationId"]: one for item in document["paths"].values() for one in item.values()}


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_client_has_a_call_for_every_operation_of_the_document(kind: Any, document: dict[str, Any]) -> None:
    client = kind("http://127.0.0.1:1", "key")
    for operation_id in operations(document).keys() - NOT_THERE:
        found = client
        for name in call_of(operation_id).split("."):
            found = getattr(found, name, None)
        assert callable(found), f"{operation_id} has no call {call_of(operation_id)}"


def test_a_call_has_every_parameter_of_its_operation(document: dict[str, Any]) -> None:
    client = Oddswire("http://127.0.0.1:1", "key")
    for operation_id, operation in operations(document).items():
        if operation_id in ENDLESS | {"getArchiveFile"}:
            continue
        found: Any = client
        for name in call_of(operation_id).split("."):
            found = getattr(found, name)
        expected = {one["name"] for one in operation.get("parameters", []) if "name" in one}
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        expected |= body.get("properties", {}).keys()
        assert {python_name(name) for name in expected} <= inspect.signature(found).parameters.keys(), operation_id


def test_both_clients_have_the_same_calls() -> None:
    def calls(client: Any) -> dict[str, list[str]]:
        groups = {name: value for name, value in vars(client).items() if not name.startswith("_")}
        owners = {"": client, **groups}
        return {
            f"{group}.{name}": [str(one) for one in inspect.signature(method).parameters.values()]
            for group, owner in owners.items()
            for name, method in inspect.getmembers(owner, callable)
            if not name.startswith("_") or name == "__call__"
        }

    plain = calls(Oddswire("http://127.0.0.1:1", "key"))
    awaited = calls(AsyncOddswire("http://127.0.0.1:1", "key"))
    del plain[".close"], awaited[".aclose"]
    assert plain == awaited


def test_every_code_of_the_document_has_a_class(document: dict[str, Any]) -> None:
    codes = set(document["components"]["schemas"]["ErrorCode"]["enum"])
    assert codes - errors.CLASS_OF_CODE.keys() == set()
    assert errors.CLASS_OF_CODE.keys() - codes == {"unexpected_answer"}


def test_the_package_has_the_version_of_the_server() -> None:
    server = (REPOSITORY / "src" / "config" / "version.ts").read_text()
    assert re.search(r"VERSION = '([^']+)'", server)[1] == oddswire.__version__  # type: ignore[index]


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("datamodel_code_generator", "ruff")),
    reason="the generator is not installed: pip install './clients/python[dev]'",
)
def test_the_generated_files_are_those_of_the_document(document: dict[str, Any]) -> None:
    del document
    done = subprocess.run(
        [sys.executable, "scripts/generate.py", "--check"], cwd=PACKAGE, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
