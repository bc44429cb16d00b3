#!/usr/bin/env bash
# Lints the OpenAPI document with the rules of redocly.yaml and .spectral.yaml. Needs `npm run build`. The linters are large
# and needed here only, so npx downloads them in these versions.
set -euo pipefail
cd "$(dirname "$0")/.."

document=$(mktemp --suffix=.json)
trap 'rm -f "$document"' EXIT
node scripts/print-openapi.mjs >"$document"

REDOCLY_TELEMETRY=off npx --yes @redocly/cli@2.77.0 lint "$document" --config redocly.yaml
npx --yes @stoplight/spectral-cli@6.16.3 lint "$document" --ruleset .spectral.yaml --fail-severity warn
