"""The schemas of the document in the form that the generator of classes needs.

Every object has a name, every name is one of Python, epoch seconds are times, numbers with a fraction are decimals, and a word or a
member of a union that a later version of the service adds has a place.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

# Not by way of the package: it needs the files that are generated here.
_SPEC = importlib.util.spec_from_file_location("names", Path(__file__).parents[1] / "src" / "oddswire" / "names.py")
assert _SPEC is not None
assert _SPEC.loader is not None
_NAMES = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_NAMES)
python_name = _NAMES.python_name

Schema = dict[str, Any]

TIMES = frozenset(
    [
        "timestamp",
        "created_at",
        "added_at",
        "open_at",
        "close_at",
        "resolved_at",
        "updated_at",
        "since",
        "checked_at",
        "as_of",
        "observed_at",
        "at",
        "received_at",
        "last_success_at",
        "start",
        "end",
        "made_at",
        "valid_from",
        "valid_until",
        "known_at",
        "read_at",
        "covered_from",
        "covered_to",
        "requested_at",
        "next_try_at",
        "missing_since",
        "measured_at",
        "settled_to",
    ]
)
"""Integers that are epoch seconds."""

COUNTS = frozenset(
    [
        "firingCount",
        "observations",
        "markets",
        "attempt",
        "durationMs",
        "statusCode",
        "responseHeadersRemoved",
        "responseHeadersOmitted",
        "lastDurationMs",
        "count",
        "levels",
        "windowSeconds",
        "windows",
        "bookAgeMs",
        "lastStatusCode",
        "round",
        "version",
        "seq",
        "conflated",
        "trades",
        "open_gaps",
        "deliveries",
        "cooldownSeconds",
        "rows",
        "in_effect",
        "bytes",
        "revision",
        "schema_version",
        "markets_gap",
        "markets_unknown",
        "age_difference_seconds",
        "attempts",
        "market_count",
        "exponent",
        "digits",
        "balance_digits",
        "lag_seconds",
        "failures",
        "subscribed",
        "gaps_24h",
        "markets_missing",
        "unpriced",
        "alertsChanged",
        "recovered",
        "index",
    ]
)
"""Integers that are not times."""

EITHER = {
    # Of a gap of a stream, and of the difference of two versions: numbers. Of the evidence of coverage: times.
    "from": "number",
    "to": "number",
}

INPUT_NAMES = {"createAlert": "NewAlert"}
"""Names of the bodies that other bodies contain."""

RENAMED = {
    "AlertBacktestResultFiring": "BacktestFiring",
    "AlertBacktestResultFiringPayout": "Payout",
    "AlertBacktestResultGap": "BacktestGap",
    "DeleteAlertResult": "Deleted",
    "DeleteWebhookResult": "DeletedWebhook",
    "GetAlertResult": "AlertWithFirings",
    "GetAlertResultFiring": "AlertFiring",
    "GetLivenessResult": "Liveness",
    "GetReadinessResult": "Readiness",
    "HeartbeatMessageDataVenue": "HeartbeatVenue",
    "OrderbookBid": "OrderbookLevel",
    "RecoverDeliveriesResult": "Recovered",
    "RotatedWebhookFilter": "WebhookFilter",
}
"""Better names than those by the place of the first use."""

LEFT_OUT = frozenset({"ErrorMeta", "ErrorCode"})
"""Schemas of failures that `errors` has by hand."""

UNKNOWN: Schema = {
    "type": "object",
    "description": "A member of a union that this version of the client does not know.",
    "properties": {
        "type": {"type": "string", "description": "Its `type`; empty without one."},
        "raw": {"type": "object", "additionalProperties": True, "description": "The JSON value."},
    },
    "required": ["type", "raw"],
}

_SECONDS = re.compile(r"(?:, )? ?\b[Ee]poch seconds\b\.?")
"""What the document says about integers that are times here."""
_REF = "#/components/schemas/"
_KEPT = ("type", "description", "format", "required", "additionalProperties", "const", "enum")


def pascal(name: str) -> str:
    """`price_alert` and `priceAlert` as `PriceAlert`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name))


def singular(name: str) -> str:
    """`deliveries` as `delivery`."""
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


class Schemas:
    """The named schemas of a document. Calls add those of answers and bodies."""

    def __init__(self, document: Schema) -> None:
        self.document = document
        self.components: dict[str, Schema] = {}
        self.wire_names: dict[str, str] = {}
        """The name on the wire of each field of an input that has another name here."""
        self._names: dict[str, str] = {}
        self.components["Unknown"] = UNKNOWN
        for name, schema in document["components"]["schemas"].items():
            if name not in LEFT_OUT:
                self._define(name, schema, is_input=False)

    def _define(self, name: str, schema: Schema, *, is_input: bool) -> str:
        """Adds a schema with a name. An equal one that has a name keeps it."""
        converted = self._converted(schema, name, is_input=is_input, top=True)
        key = _shape(converted)
        if key in self._names and name not in self.document["components"]["schemas"]:
            return self._names[key]
        name = RENAMED.get(name, name)
        if name in self.components:
            raise ValueError(f"two schemas have the name {name}")
        self.components[name] = converted
        self._names.setdefault(key, name)
        return name

    def named(self, schema: Schema, name: str, *, is_input: bool = False) -> str:
        """The name of the class of an object."""
        if "$ref" in schema:
            return str(schema["$ref"]).removeprefix(_REF)
        return self._define(name, schema, is_input=is_input)

    def _converted(self, schema: Schema, name: str, *, is_input: bool, top: bool = False) -> Schema:
        if "$ref" in schema:
            return {key: schema[key] for key in ("$ref", "description") if key in schema}
        for union in ("oneOf", "anyOf"):
            if union in schema:
                return self._union(schema, schema[union], name, is_input=is_input)
        kind = schema.get("type")
        if kind == "object" and "properties" in schema:
            return (
                self._object(schema, name, is_input=is_input)
                if top
                else {"$ref": _REF + self.named(schema, name, is_input=is_input)}
            )
        kept = {key: schema[key] for key in _KEPT if key in schema}
        if kind == "array":
            kept["items"] = self._converted(schema["items"], singular(name), is_input=is_input)
        if kind == "number":
            kept["format"] = "decimal"
        if "enum" in schema and not is_input and len(schema["enum"]) > 1:
            words = {"type": "string", "enum": schema["enum"]}
            return {"anyOf": [words, {"type": "string"}], **{key: kept[key] for key in ("description",) if key in kept}}
        return kept

    def _union(self, schema: Schema, members: list[Schema], name: str, *, is_input: bool) -> Schema:
        objects = [one for one in members if "$ref" in one or one.get("type") == "object"]
        converted = [
            self._converted(
                one,
                f"{name}{_tag(one)}" if one.get("type") == "object" and len(objects) > 1 else name,
                is_input=is_input,
            )
            for one in members
        ]
        if len(objects) > 1 and not is_input:
            converted.append({"$ref": f"{_REF}Unknown"})
        result: Schema = {"anyOf": converted}
        if "description" in schema:
            result["description"] = schema["description"]
        return result

    def _object(self, schema: Schema, name: str, *, is_input: bool) -> Schema:
        properties: dict[str, Schema] = {}
        for wire, inner in schema["properties"].items():
            field = python_name(wire)
            if field in properties:
                raise ValueError(f"{name} has two fields {field}")
            if is_input and field != wire and self.wire_names.setdefault(field, wire) != wire:
                raise ValueError(f"inputs have two spellings of {field}")
            properties[field] = self._with_time(
                self._converted(inner, name + pascal(wire), is_input=is_input), wire, inner, name
            )
        result: Schema = {"type": "object", "properties": properties}
        if "description" in schema:
            result["description"] = schema["description"]
        if required := schema.get("required"):
            result["required"] = [python_name(one) for one in required]
        return result

    def _with_time(self, converted: Schema, wire: str, schema: Schema, owner: str) -> Schema:
        """
        An integer that is epoch seconds as a time.

        Raises:
            ValueError: it is an integer of an unknown kind.
        """
        if "anyOf" in converted:
            members = [
                self._with_time(one, wire, original, owner)
                for one, original in zip(converted["anyOf"], schema.get("anyOf") or converted["anyOf"], strict=False)
            ]
            described = "description" in converted and members != converted["anyOf"]
            about = {"description": without_seconds(converted["description"])} if described else {}
            return {**converted, **about, "anyOf": members}
        if converted.get("type") != "integer":
            return converted
        says_seconds = "poch seconds" in schema.get("description", "")
        if wire in EITHER:
            is_time = "gap begins here" in schema.get("description", "") or "gap ends here" in schema.get(
                "description", ""
            )
        elif wire in TIMES or wire in COUNTS:
            is_time = wire in TIMES
        else:
            raise ValueError(f"{owner}.{wire} is an integer: add it to TIMES or to COUNTS in schemas.py")
        if says_seconds and not is_time:
            raise ValueError(f"{owner}.{wire} is epoch seconds: move it to TIMES")
        if not is_time:
            return converted
        kept = {"type": "string", "format": "date-time"}
        description = without_seconds(converted.get("description", ""))
        return {**kept, "description": description} if description else kept


def without_seconds(description: str) -> str:
    """A description of an integer that is a time here."""
    return _SECONDS.sub("", description).strip(" ,")


def _tag(schema: Schema) -> str:
    """What tells a member of a union from the others: its first word."""
    for inner in schema.get("properties", {}).values():
        words = [inner["const"]] if "const" in inner else inner.get("enum")
        if words:
            return pascal(str(words[0]))
    return ""


def _shape(schema: Any) -> str:
    """A text that is equal for schemas that differ only in their descriptions."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: bare(inner)
                for key, inner in value.items()
                if not (key == "description" and isinstance(inner, str))
            }
        return [bare(one) for one in value] if isinstance(value, list) else value

    return json.dumps(bare(schema), sort_keys=True)
