"""Parses a program of a page, and checks its calls against the signatures of the Python client, which needs no package. Reads the program
from the standard input, and prints its calls."""

import ast
import pathlib
import sys

SOURCE = pathlib.Path(__file__).parents[4] / "clients/python/src/oddswire"


def functions(file, name):
    for node in ast.parse((SOURCE / file).read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    raise SystemExit(f"{file} has no class {name}")


groups = {
    target.attr: assigned.value.func.id
    for assigned in functions("calls.py", "Calls")["__init__"].body
    if isinstance(assigned, ast.Assign) and isinstance(assigned.value, ast.Call)
    for target in assigned.targets
}
streams = functions("streams.py", "StreamCalls")
seen = []
for node in ast.walk(ast.parse(sys.stdin.read())):
    if not isinstance(node, ast.Call):
        continue
    path = ast.unparse(node.func).split(".")
    if path[0] != "client":
        continue
    found = streams.get(path[1]) if len(path) == 2 else functions("calls.py", groups[path[1]]).get(path[2])
    if found is None:
        raise SystemExit(f"the client has no call {'.'.join(path)}")
    arguments = found.args
    positional = [each.arg for each in arguments.args[1:]]
    if len(node.args) > len(positional):
        raise SystemExit(f"{'.'.join(path)} takes {len(positional)} values without a name")
    known = {*positional, *(each.arg for each in arguments.kwonlyargs)}
    given = {*positional[: len(node.args)], *(each.arg for each in node.keywords if each.arg)}
    if given - known:
        raise SystemExit(f"{'.'.join(path)} does not take {sorted(given - known)}")
    required = positional[: len(positional) - len(arguments.defaults)]
    hasMore = any(each.arg is None for each in node.keywords)
    if not hasMore and set(required) - given:
        raise SystemExit(f"{'.'.join(path)} lacks {sorted(set(required) - given)}")
    seen.append(".".join(path[1:]))
if not seen:
    raise SystemExit("the program has no call")
print(" ".join(seen))
