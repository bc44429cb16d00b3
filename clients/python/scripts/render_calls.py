"""The text of `calls.py`: a method per operation, for both clients."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from operations import CALLS, FIRST_PAGE_ONLY, GROUPS, HINTS, MIXINS, SERIES, WRITTEN
from schemas import INPUT_NAMES, TIMES, Schemas, pascal, python_name, singular, without_seconds

Schema = dict[str, Any]

HEAD = '''
"""Every operation of the API as a method, in groups. `Oddswire` has the first half, `AsyncOddswire` the second.

Every method raises `ApiError` for an answer that reports an error, `TransportError` without a whole answer, and `DeadlineError` after the
deadline of `options`. A naive `datetime` raises `ValueError`.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal

from . import models, series
from .downloads import AsyncDownload, Download
from .encode import UNSET, Instant, Moment, Number, Unset, iso_time, seconds, words
from .pages import Answer, Page
from .runners import AsyncRunner, Runner
from .transport import CallOptions, Core, Operation

'''


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method."""

    name: str
    wire: str
    hint: str
    default: str | None
    """The text of its default; None when it is required."""
    value: str
    """The expression that is sent."""
    doc: str
    place: str
    """`path`, `query`, `body`, or `removable` for a field of the body that also accepts None."""

    @property
    def text(self) -> str:
        return f"{self.name}: {self.hint}" + ("" if self.default is None else f" = {self.default}")


@dataclass
class Call:
    """A method of a group."""

    operation_id: str
    group: str
    name: str
    parameters: list[Parameter]
    shape: str
    types: list[str]
    doc: str
    is_paged: bool
    is_create: bool
    has_body: bool
    constant: str = field(init=False)

    def __post_init__(self) -> None:
        self.constant = f"_{python_name(self.operation_id).upper()}"

    @property
    def result(self) -> str:
        first, *rest = self.types or [""]
        return {
            "page": f"Page[{', '.join(self.types)}]",
            "answer": f"Answer[{', '.join(self.types)}]",
            "item": first,
            "items": f"builtins.list[{first}]",
            "either": " | ".join([first, *rest]),
            "document": "dict[str, Any]",
            "text": "str",
        }[self.shape]

    def arguments(self, *, without: tuple[str, ...] = ()) -> str:
        """The parameters of the signature, with those of the path first and by position."""
        shown = [one for one in self.parameters if one.wire not in without]
        by_place = [
            one
            for one in shown
            if one.default is None and (one.place == "path" or one.wire in ("market_ids", "outcome_ids"))
        ]
        named = sorted((one for one in shown if one not in by_place), key=lambda one: one.default is not None)
        texts = [one.text for one in by_place]
        return ", ".join(["self", *texts, "*", *(one.text for one in named)])

    def mapping(self, place: str, *, without: tuple[str, ...] = ()) -> str:
        given = [one for one in self.parameters if one.place == place and one.wire not in without]
        return "{" + ", ".join(f'"{one.wire}": {one.value}' for one in given) + "}"

    def steps(self, *, query: str | None = None) -> str:
        """The expression of the steps of the call."""
        path = self.mapping("path")
        query = query or self.mapping("query")
        kinds = ", ".join(self.types)
        if self.shape in ("page", "answer"):
            return f"self._core.{self.shape}({self.constant}, {kinds}, {path}, {query}, options)"
        if self.shape == "document":
            return f"self._core.document({self.constant}, options)"
        if self.shape == "text":
            return f"self._core.text({self.constant}, {path}, options)"
        extra = ""
        if self.has_body:
            extra += f", body=_body({self.mapping('body')}, {self.mapping('removable')})"
        if self.is_create:
            extra += ", idempotency_key=idempotency_key"
        return f"self._core.{self.shape}({self.constant}, {kinds}, {path}, options{extra})"

    def documented(self, doc: str, *, without: tuple[str, ...] = (), extra: tuple[tuple[str, str], ...] = ()) -> str:
        """The docstring of a method, with its parameters."""
        rows = [(one.name, one.doc) for one in self.parameters if one.wire not in without and one.doc]
        rows += list(extra)
        if self.is_create:
            rows.append(
                (
                    "idempotency_key",
                    "Your own key, which makes the call safe across restarts of your program. By default a random one. "
                    "False: none, and no retries.",
                )
            )
        lines = [_wrapped(doc, 0)]
        if rows:
            lines += ["", "Args:"] + [_wrapped(f"{name}: {text}", 4) for name, text in rows]
        body = "\n".join(lines)
        return textwrap.indent(f'"""{body}\n"""' if "\n" in body else f'"""{body}"""', " " * 8)


def _wrapped(text: str, indent: int) -> str:
    text = " ".join(text.split()).replace("\\", "\\\\")
    first = " " * indent
    return textwrap.fill(
        text,
        108 - indent,
        initial_indent=first,
        subsequent_indent=first + (" " * 4 if indent else ""),
        break_long_words=False,
    )


def render_calls(schemas: Schemas) -> str:
    """
    The text of the file. Adds the classes of answers and of inputs to the schemas.

    Raises:
        ValueError: an operation has no place in `operations`, or the document lacks one of them.
    """
    document = schemas.document
    operations = {
        one["operationId"]: (method, path, one)
        for path, item in document["paths"].items()
        for method, one in item.items()
    }
    if unplaced := operations.keys() - CALLS.keys() - WRITTEN.keys():
        raise ValueError(f"operations without a place in operations.py: {sorted(unplaced)}")
    if gone := (CALLS.keys() | WRITTEN.keys()) - operations.keys():
        raise ValueError(f"operations.py has operations that the document lacks: {sorted(gone)}")
    for operation_id, name in INPUT_NAMES.items():
        schemas.named(_body(operations[operation_id][2]), name, is_input=True)
    calls = [_call(schemas, operation_id, *operations[operation_id]) for operation_id in CALLS]
    constants = [_constant(operation_id, *operations[operation_id]) for operation_id in operations]
    wire = "\n".join(f'    "{name}": "{spelling}",' for name, spelling in sorted(schemas.wire_names.items()))
    groups = sorted({one.group for one in calls if one.group})
    parts = [
        HEAD,
        "\n".join(constants),
        f'\nWIRE_NAMES: Mapping[str, str] = {{\n{wire}\n}}\n"""The names on the wire of fields of bodies that have another name here."""\n',
        "\ndef _body(fields: dict[str, object], removable: dict[str, object]) -> dict[str, object]:\n"
        '    """The fields of a body that are given. None removes the value of a removable one, which is `UNSET` by default."""\n'
        "    given = {name: value for name, value in fields.items() if value is not None}\n"
        "    return given | {name: value for name, value in removable.items() if value is not UNSET}\n",
    ]
    for is_async in (False, True):
        parts += [_group(group, [one for one in calls if one.group == group], is_async=is_async) for group in groups]
        parts.append(_root(groups, [one for one in calls if not one.group], is_async=is_async))
    return "\n\n".join(parts) + "\n"


def _constant(operation_id: str, method: str, path: str, operation: Schema) -> str:
    security = operation.get("security") or []
    key = next(iter(security[0]), "none") if security else "none"
    is_idempotent = any(one.get("$ref", "").endswith("/Idempotency-Key") for one in operation.get("parameters", []))
    if method == "post" and not is_idempotent:
        raise ValueError(f"{operation_id} is a POST without Idempotency-Key")
    kind = {"get": "read", "post": "create", "put": "replace", "patch": "replace", "delete": "delete"}[method]
    etag = (
        any(one.get("$ref", "").endswith("/If-None-Match") for one in operation.get("parameters", []))
        and operation_id != "getArchiveFile"
    )
    name = python_name(operation_id).upper()
    public = name if operation_id in WRITTEN else f"_{name}"
    return f'{public} = Operation("{operation_id}", "{method.upper()}", "{path}", "{key}", "{kind}"{", has_etag=True" if etag else ""})'


def _body(operation: Schema) -> Schema:
    found: Schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return found


def _call(schemas: Schemas, operation_id: str, method: str, path: str, operation: Schema) -> Call:
    *groups, name = CALLS[operation_id].split(".")
    parameters = [
        _parameter(schemas, one, operation_id) for one in operation.get("parameters", []) if "$ref" not in one
    ]
    has_body = "requestBody" in operation
    if has_body:
        body = _body(operation)
        required = set(body.get("required", []))
        parameters += [
            _field(schemas, operation_id, wire, one, is_required=wire in required)
            for wire, one in body.get("properties", {}).items()
        ]
    shape, types, is_paged = _shape_of(schemas, operation_id, method, operation)
    summary, description = operation["summary"].rstrip("."), operation.get("description", "")
    return Call(
        operation_id=operation_id,
        group=groups[0] if groups else "",
        name=name,
        parameters=parameters,
        shape=shape,
        types=types,
        doc=f"{summary}. {description}".strip(),
        is_paged=is_paged,
        is_create=method == "post",
        has_body=has_body,
    )


def _shape_of(schemas: Schemas, operation_id: str, method: str, operation: Schema) -> tuple[str, list[str], bool]:
    answers = {status: one for status, one in operation["responses"].items() if status.startswith("2")}
    contents = [one["content"] for one in answers.values()]
    if "application/json" not in contents[0]:
        return "text", [], False
    found = [one["application/json"]["schema"] for one in contents]
    if "properties" not in found[0]:
        return "document", [], False
    data, meta = found[0]["properties"]["data"], found[0]["properties"].get("meta")
    is_market = bool(operation.get("security")) and "bearer" in operation["security"][0]
    if data.get("type") == "array":
        row = schemas.named(data["items"], f"{pascal(operation_id)}Result")
        if method != "get":
            return "items", [f"models.{row}"], False
        is_paged = any(one.get("name") == "cursor" for one in operation.get("parameters", []))
        return "page", [f"models.{row}", f"models.{_meta(schemas, operation_id, meta)}"], is_paged
    kinds = [schemas.named(one["properties"]["data"], f"{pascal(operation_id)}Result") for one in found]
    if is_market:
        return "answer", [f"models.{kinds[0]}", f"models.{_meta(schemas, operation_id, meta)}"], False
    if len(kinds) > 1 and kinds[0] != kinds[1]:
        return "either", [f"models.{one}" for one in kinds], False
    return "item", [f"models.{kinds[0]}"], False


def _meta(schemas: Schemas, operation_id: str, meta: Schema) -> str:
    common = {
        frozenset({"request_id", "timestamp", "warnings"}): "Meta",
        frozenset({"request_id", "timestamp"}): "PlainMeta",
        frozenset({"request_id", "timestamp", "warnings", "next_cursor"}): "PageMeta",
        frozenset({"request_id", "timestamp", "next_cursor"}): "PlainPageMeta",
        frozenset({"warnings", "next_cursor"}): "AccountPageMeta",
    }
    name = common.get(frozenset(meta["properties"]), f"{pascal(operation_id)}Meta")
    return name if name in schemas.components else schemas.named(meta, name)


def _words_hint(schema: Schema) -> str:
    return "Literal[" + ", ".join(f'"{one}"' for one in schema["enum"]) + "]"


def _parameter(schemas: Schemas, parameter: Schema, operation_id: str) -> Parameter:
    wire, schema = parameter["name"], parameter["schema"]
    name = python_name(wire)
    is_required = bool(parameter.get("required"))
    hint, value, extra = "str", name, ""
    documented: Callable[[str], str] = str
    if wire in ("market_ids", "outcome_ids"):
        hint, value = "Sequence[str]", f"words({name})"
    elif "anyOf" in schema and any(one.get("title") == "comma list" for one in schema["anyOf"]):
        one_of = _words_hint(schema["anyOf"][0])
        hint, value = f"{one_of} | Sequence[{one_of}]", f"words({name})"
    elif "anyOf" in schema and any(one.get("format") == "date-time" for one in schema["anyOf"]):
        hint, value = "Instant", f"iso_time({name})"
    elif schema.get("format") == "date":
        hint = "date | str"
    elif "enum" in schema:
        hint = _words_hint(schema)
    elif schema["type"] == "boolean":
        hint = "bool"
    elif schema["type"] == "integer":
        is_time = wire in TIMES and schema.get("maximum", 0) > 10**11
        hint, value = ("Moment", f"seconds({name})") if is_time else ("int", name)
        extra = " A datetime, or epoch seconds." if is_time else ""
        documented = without_seconds if is_time else str
    elif wire in ("size", "notional"):
        hint = "Number"
    doc = documented(schema.get("description") or parameter.get("description") or "") + extra
    if "default" in schema:
        doc += f" Default: {schema['default']}."
    place = parameter["in"]
    default = None if is_required else "None"
    if wire == "venue" and place == "path":
        default, doc = '"all"', "The name of a venue, or `all`."
    return Parameter(name, wire, hint if default != "None" else f"{hint} | None", default, value, doc.strip(), place)


def _field(schemas: Schemas, operation_id: str, wire: str, schema: Schema, *, is_required: bool) -> Parameter:
    owner = INPUT_NAMES.get(operation_id, pascal(operation_id))
    name = python_name(wire)
    members = schema.get("anyOf", [schema])
    can_be_null = any(one.get("type") == "null" for one in members)
    named = HINTS.get((operation_id, wire))
    hints = (
        [named]
        if named
        else [_input_hint(schemas, one, owner + pascal(wire)) for one in members if one.get("type") != "null"]
    )
    is_time = any(one.get("format") == "date-time" for one in members)
    if is_time:
        hints = ["Instant | int" if any(one.get("type") == "integer" for one in members) else "Instant"]
    value = f"iso_time({name})" if is_time and not any(one.get("type") == "integer" for one in members) else name
    doc = schema.get("description") or next((one["description"] for one in members if "description" in one), "")
    if is_required:
        return Parameter(name, wire, " | ".join(hints), None, value, doc, "body")
    if can_be_null:
        doc = f"{doc} None removes it.".strip()
        if is_time:
            value = f"{name} if isinstance({name}, Unset) else iso_time({name})"
        return Parameter(name, wire, " | ".join([*hints, "Unset", "None"]), "UNSET", value, doc, "removable")
    return Parameter(name, wire, " | ".join([*hints, "None"]), "None", value, doc, "body")


def _input_hint(schemas: Schemas, schema: Schema, name: str) -> str:
    if "enum" in schema:
        return _words_hint(schema)
    kind = schema.get("type")
    if kind == "array":
        return f"Sequence[{_input_hint(schemas, schema['items'], name.removesuffix('s'))}]"
    if kind == "object":
        if "properties" in schema:
            return f"models.{schemas.named(schema, name, is_input=True)}"
        return "Mapping[str, str]"
    return {"string": "str", "integer": "int", "number": "Number", "boolean": "bool"}[str(kind)]


def _class_name(group: str) -> str:
    return f"{pascal(singular(group))}Calls"


def _group(group: str, calls: list[Call], *, is_async: bool) -> str:
    prefix = "Async" if is_async else ""
    base = f"({prefix}{MIXINS[group]})" if group in MIXINS else ""
    lines = [
        f"class {prefix}{_class_name(group)}{base}:",
        f'    """{GROUPS[group]}"""',
        "",
        f"    def __init__(self, core: Core, runner: {prefix}Runner) -> None:",
        "        self._core = core",
        "        self._runner = runner",
    ]
    for call in calls:
        lines += ["", *_method(call, is_async=is_async)]
        if call.is_paged:
            lines += ["", *_iterators(call, is_async=is_async)]
        if call.operation_id in SERIES:
            lines += ["", *_series(call, is_async=is_async)]
    return "\n".join(lines)


def _method(call: Call, *, is_async: bool) -> list[str]:
    key = ", idempotency_key: str | Literal[False] | None = None" if call.is_create else ""
    start, wait = ("async def", "await ") if is_async else ("def", "")
    arguments = call.arguments()
    return [
        f"    {start} {call.name}({arguments}{key}, options: CallOptions | None = None) -> {call.result}:",
        call.documented(call.doc),
        f"        return {wait}self._runner.run({call.steps()})",
    ]


_ITERATED = ("limit", "cursor")
_PAGE_SIZE = ("page_size", "Rows per request, 1 to 1,000. Default: 100.")


def _iterators(call: Call, *, is_async: bool) -> list[str]:
    suffix = call.name.removeprefix("list")
    of_rows, of_pages = f"iterate{suffix}", f"{singular(suffix.removeprefix('_'))}_pages".removeprefix("_")
    iterator = "AsyncIterator" if is_async else "Iterator"
    arguments = f"{call.arguments(without=_ITERATED)}, page_size: int | None = None, options: CallOptions | None = None"
    walked = [one for one in call.parameters if one.wire not in _ITERATED]
    by_place = [one.name for one in walked if one.place == "path" and one.default is None]
    named = [one.name for one in walked if one.name not in by_place]
    passed = ", ".join([*by_place, *(f"{one}={one}" for one in [*named, "page_size", "options"])])
    first_only = FIRST_PAGE_ONLY.get(call.operation_id, ())
    query = call.mapping("query", without=_ITERATED)
    moving = '{**query, "limit": page_size, "cursor": cursor}'
    if first_only:
        dropped = ", ".join(f'"{one}": None' for one in first_only)
        moving = f'{{**query, **({{}} if cursor is None else {{{dropped}}}), "limit": page_size, "cursor": cursor}}'
    start, loop = ("async def", "async for") if is_async else ("def", "for")
    rows = [
        f"    {start} {of_rows}({arguments}) -> {iterator}[{call.types[0]}]:",
        call.documented(
            f"All rows of `{call.name}`, each exactly once. A page is read when its first row is needed.",
            without=_ITERATED,
            extra=(_PAGE_SIZE,),
        ),
        f"        {loop} page in self.{of_pages}({passed}):",
        *(
            ["            for row in page:", "                yield row"]
            if is_async
            else ["            yield from page"]
        ),
    ]
    pages = [
        "",
        f"    def {of_pages}({arguments}) -> {iterator}[{call.result}]:",
        call.documented(
            f"All pages of `{call.name}`. A page is read when it is needed.", without=_ITERATED, extra=(_PAGE_SIZE,)
        ),
        f"        query: dict[str, object] = {query}",
        f"        return self._runner.each_page(lambda cursor: {call.steps(query=moving)})",
    ]
    return rows + pages


def _series(call: Call, *, is_async: bool) -> list[str]:
    bucket = SERIES[call.operation_id]
    left_out = ("market_id", "limit", "cursor", "direction")
    arguments = call.arguments(without=left_out).replace("self, *", "self, market_ids: str | Sequence[str], *")
    start, wait = ("async def", "await ") if is_async else ("def", "")
    rows = f"series.Series[{', '.join(call.types)}]"
    query = call.mapping("query", without=left_out)
    if bucket is None:
        steps = call.steps(query='{**query, "direction": "asc", "limit": series.PAGE_ROWS, "cursor": cursor}')
        reading = f"series.paged(markets, lambda market_id, cursor: {steps})"
    else:
        steps = call.steps(query='{**query, "start": start, "end": end}')
        reading = (
            f"series.bucketed(markets, seconds(start), seconds(end), {bucket}, lambda market_id, start, end: {steps})"
        )
    return [
        f"    {start} __call__({arguments}, options: CallOptions | None = None) -> {rows}:",
        call.documented(
            "The rows of one or many markets, oldest first, over as many requests as the range needs, for `to_pandas` and `to_polars`.",
            without=left_out,
            extra=(("market_ids", "One market or many."),),
        ).replace("; at most 5000", ""),
        "        markets = [market_ids] if isinstance(market_ids, str) else builtins.list(market_ids)",
        f"        query: dict[str, object] = {query}",
        f"        return {wait}self._runner.run({reading})",
    ]


def _root(groups: list[str], calls: list[Call], *, is_async: bool) -> str:
    prefix = "Async" if is_async else ""
    lines = [
        f"class {prefix}Calls:",
        '    """The groups of calls, and the documents of the service."""',
        "",
        f"    def __init__(self, core: Core, runner: {prefix}Runner) -> None:",
        "        self._core = core",
        "        self._runner = runner",
        *(f"        self.{group} = {prefix}{_class_name(group)}(core, runner)" for group in groups),
    ]
    for call in calls:
        lines += ["", *_method(call, is_async=is_async)]
    return "\n".join(lines)
