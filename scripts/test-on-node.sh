#!/usr/bin/env bash
# Runs the tests on another version of Node, which npm downloads: scripts/test-on-node.sh 24 [arguments of vitest]
# Processes that tests start use it too.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?the version of Node is missing, such as 24}
shift
node=$(npx --yes --package "node@$version" --call 'node -p process.execPath')
PATH="$(dirname "$node"):$PATH"
echo "Node $(node --version), V8 $(node -p process.versions.v8), OpenSSL $(node -p process.versions.openssl)"
if [ "$(node -p 'process.versions.node.split(".")[0]')" != "${version%%.*}" ]; then
  echo "npm did not provide Node $version" >&2
  exit 1
fi
exec node node_modules/vitest/vitest.mjs run "$@"
