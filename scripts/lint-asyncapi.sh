#!/usr/bin/env bash
# Parses the AsyncAPI document with the parser of AsyncAPI, and fails for an error or a warning. Needs `npm run build`. The parser is large
# and needed here only, so npm installs this version in a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
node scripts/print-asyncapi.mjs >"$folder/asyncapi.json"
echo '{}' >"$folder/package.json"
npm install --prefix "$folder" --no-save --ignore-scripts --silent @asyncapi/parser@3.6.3

cat >"$folder/parse.cjs" <<'END'
const { readFileSync } = require('node:fs');
const { Parser } = require('@asyncapi/parser');

const WARNING = 1;
new Parser().parse(readFileSync(process.argv[2], 'utf8')).then(({ document, diagnostics }) => {
  const problems = diagnostics.filter(({ severity }) => severity <= WARNING);
  for (const { code, message, path } of problems) console.error(`${path.join('.')}: ${message} (${code})`);
  if (!document || problems.length > 0) process.exitCode = 1;
  else console.log(`AsyncAPI ${document.version()}: ${document.allMessages().all().length} messages`);
});
END
node "$folder/parse.cjs" "$folder/asyncapi.json"
