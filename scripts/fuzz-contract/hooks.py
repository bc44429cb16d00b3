"""Hooks of schemathesis for `scripts/fuzz-contract.sh`."""

import itertools
import json
import re

import schemathesis
from schemathesis import GenerationMode

# Rules that JSON Schema cannot state: they relate two parameters, or a parameter to the clock or to stored data.
RELATIONS = [
    r"^must be before end",
    r"^must not be in the future$",
    r"^must be in the future$",
    r"^must not be more than 14 days ago$",
    r"^the range has more than \d+ buckets",
    r"^is not an outcome of this market$",
    r"^does not combine with ",
    r"^must not be given with ",
    r"^does not belong to the condition ",
    r"^must be \w+ with the condition ",
    r"^is a name that occurs twice$",
    r"^must have at most 4096 characters in total$",
    r"^is required: from and to name two versions$",
    r"^needs ",
    r"^this alert does not repeat$",
    r"^must be after start$",
    r"^must be a version from 1 to \d+$",
    r"^must not be later than to$",
    r"^is required, or notional in its place$",
    # The form of a webhook's URL depends on its chat service.
    r"^must end with /",
    # The rest of a URL: the service parses it, and judges its host and port.
    r"^is not a valid URL$",
    r"^must have a host ",
    r"^must have at most \d+ characters when percent-encoded$",
    r"^must not contain a user name or password$",
    r"^must use port 443 or ",
    r"^the destination address is not allowed$",
    # The form of an address depends on the venue.
    r"^must be 0x and 40 hexadecimal digits",
    r"^must be a Solana address",
    # The document would need a pattern on every text and on the names of every object: docs/api.md states it.
    r"must not contain U\+0000 or lone surrogates$",
]

# Codes that depend on stored data, on other requests, or on the account.
OF_STATE = {
    "invalid_cursor",
    "idempotency_mismatch",
    "conflict",
    "quota_exceeded",
    "rate_limited",
    "archive_off",
    "archive_quota_exceeded",
}

addresses = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Each request has an address of its own: the API limits the failed authentications of an address."""
    number = next(addresses)
    case.headers["X-Forwarded-For"] = f"198.18.{number // 250 % 250}.{number % 250 + 1}"


@schemathesis.check
def documented_input_is_accepted(ctx, response, case):
    """A request that follows the document is refused only for a reason that the document cannot state."""
    meta = case.meta
    if meta is None or meta.generation.mode != GenerationMode.POSITIVE or response.status_code not in (400, 422):
        return
    error = json.loads(response.content)["error"]
    if error["code"] in OF_STATE:
        return
    for detail in error.get("details", [{"path": "", "message": error["message"]}]):
        if not any(re.search(relation, detail["message"]) for relation in RELATIONS):
            raise AssertionError(f"{detail['path']}: {detail['message']}")
