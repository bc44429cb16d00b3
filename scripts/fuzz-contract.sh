#!/usr/bin/env bash
# Sends generated requests to a running demo and checks every answer against its OpenAPI document, with schemathesis.
# Needs `npm run build` and Python 3.10 or newer. A violation is a defect of the API or of the document.
#   SCHEMATHESIS_EXAMPLES: about so many requests. Default: 10000.
#   SCHEMATHESIS_SEED: the seed that a failed run prints. Default: a random one.
#   SCHEMATHESIS: the program. Default: it is installed in .artifacts/schemathesis.
set -euo pipefail
cd "$(dirname "$0")/.."

program=${SCHEMATHESIS:-.artifacts/schemathesis/bin/schemathesis}
if [ ! -x "$program" ]; then
  python3 -m venv .artifacts/schemathesis
  .artifacts/schemathesis/bin/python -m pip install --quiet --disable-pip-version-check schemathesis==4.32.5
fi

data=$(mktemp -d)
demo=
stop() {
  if [ -n "$demo" ] && kill "$demo" 2>/dev/null; then wait "$demo" || true; fi
  rm -rf "$data"
}
trap stop EXIT

# The limits of an account would end the run; the addresses of hooks.py keep the limit of failed authentications.
FUZZ_KEY=ow_fuzz_$(head -c 24 /dev/urandom | base64 | tr -dc 'A-Za-z0-9')
export FUZZ_KEY
PORT=$(node -e "const s = require('node:net').createServer().listen(0, '127.0.0.1', () => { console.log(s.address().port); s.close(); })")
export PORT DATA_DIR="$data" BOOTSTRAP_API_KEY="$FUZZ_KEY" TRUSTED_PROXIES=127.0.0.1 RATE_LIMIT_PER_MINUTE=0
export COLD_READS_PER_MINUTE=1000000 QUOTA_KEYS=100000 QUOTA_WEBHOOKS=100000 QUOTA_WALLETS=100000 QUOTA_ALERTS=1000000
mkfifo "$data/lines"
node dist/bin/oddswire.js demo --small >"$data/lines" 2>&1 &
demo=$!
exec 3<"$data/lines"
while IFS= read -r -t 300 line <&3; do
  case "$line" in "first price served"*) break ;; esac
done
cat <&3 >/dev/null &
url=http://127.0.0.1:$PORT
curl --fail --silent --show-error "$url/openapi.json" >"$data/openapi.json"

# The phases that cover each parameter and follow the links of the document send about 4,000 requests in any case.
operations=$(node -p "Object.values(JSON.parse(require('fs').readFileSync('$data/openapi.json')).paths).flatMap(Object.keys).length")
examples=$(((${SCHEMATHESIS_EXAMPLES:-10000} + operations - 1) / operations))
root=$PWD
program=$(realpath "$program")
cd "$data" # schemathesis leaves files in its folder
PYTHONPATH=$root/scripts/fuzz-contract "$program" --config-file "$root/scripts/fuzz-contract/schemathesis.toml" run openapi.json \
  --url "$url" --phases examples,coverage,fuzzing,stateful --max-examples "$examples" --warnings off \
  ${SCHEMATHESIS_SEED:+--seed "$SCHEMATHESIS_SEED"}
kill -0 "$demo"
