#!/usr/bin/env bash
# Runs the tests on another version of Node, which npm fetches: scripts/test-on-node.sh 24 [arguments of vitest]
# Processes that tests start run on it too.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?which version of Node, such as 24}
shift
node=$(npx --yes --package "node@$version" --call 'node -p process.execPath')
PATH="$(dirname "$node"):$PATH"
echo "Node $(node --version), V8 $(node -p process.versions.v8), OpenSSL $(node -p process.versions.openssl)"
if [ "$(node -p 'process.versions.node.split(".")[0]')" != "${version%%.*}" ]; then
  echo "that is not Node $version" >&2
  exit 1
fi
exec node node_modules/vitest/vitest.mjs run "$@"
