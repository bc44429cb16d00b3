"""`at_async.py`: the reads of `at.py`, with every call of the client awaited."""

from __future__ import annotations

import ast


class _Awaited(ast.NodeTransformer):
    """Makes the public methods of a class asynchronous, and awaits their calls of the client and of each other."""

    def __init__(self, owner: ast.ClassDef) -> None:
        self._public = {
            one.name for one in owner.body if isinstance(one, ast.FunctionDef) and not one.name.startswith("_")
        }

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        if node.name not in self._public:
            return node
        parts = {name: getattr(node, name) for name in node._fields}
        return ast.copy_location(ast.AsyncFunctionDef(**parts), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        path = ast.unparse(node.func)
        if path.startswith("self._client.") or path.removeprefix("self.") in self._public:
            return ast.Await(node)
        return node


def render_async_at(text: str) -> str:
    """The module with `AsyncAt`, from the text of the module with `At`."""
    module = ast.parse(text)
    owner = next(one for one in module.body if isinstance(one, ast.ClassDef) and one.name == "At")
    imports = [one for one in module.body if isinstance(one, (ast.Import, ast.ImportFrom))]
    types = [one for one in module.body if isinstance(one, ast.If)]
    own = [
        *(one.name for one in module.body if isinstance(one, (ast.ClassDef, ast.FunctionDef)) and one is not owner),
        *(target.id for one in module.body if isinstance(one, ast.Assign) for target in one.targets),  # type: ignore[attr-defined]
    ]
    found = _Awaited(owner).visit(owner)
    found.name = "AsyncAt"
    head = ast.parse(f"from .at import {', '.join(sorted(own))}").body
    body = [
        ast.Expr(ast.Constant("Reads of what was known at a moment, for asyncio and trio.")),
        *imports,
        *head,
        *types,
        found,
    ]
    rendered = ast.unparse(ast.fix_missing_locations(ast.Module(body, type_ignores=[])))
    return (
        rendered.replace("see `Oddswire.at`", "see `AsyncOddswire.at`")
        .replace("from .calls import Calls", "from .calls import AsyncCalls")
        .replace("client: Calls", "client: AsyncCalls")
    )
