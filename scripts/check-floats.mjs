#!/usr/bin/env node
// Prices, sizes and amounts are decimals (src/domain/values/decimal.ts). A conversion of a text into a binary float loses digits, so each
// `Number(` and `parseFloat(` in these folders needs a reason here: the file, the number of conversions, and what they convert.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDERS = ['src/venues', 'src/domain', 'src/store'];
const CONVERSION = /(?<![\w.])(?:Number|(?:Number\.)?parseFloat)\(/g;

/** @type {Readonly<Record<string, readonly [count: number, reason: string]>>} */
const ALLOWED = {
  'src/domain/alerts/conditions/change.ts': [
    2,
    'approximations that skip what is far from the threshold; decimals decide',
  ],
  'src/domain/alerts/probe.ts': [1, 'seconds of a window'],
  'src/domain/alerts/windows.ts': [1, 'the same approximation of a standing price'],
  'src/domain/chat/chat-request.ts': [1, 'the id of a thread'],
  'src/domain/markets/volume-witness.ts': [1, 'a share of at most nine digits'],
  'src/domain/values/base58.ts': [1, 'a digit'],
  'src/domain/values/decimal.ts': [1, 'an exponent'],
  'src/domain/values/exact-json.ts': [1, 'asks whether a number survives the conversion'],
  'src/domain/values/password.ts': [3, 'costs of a hash'],
  'src/domain/values/retry-after.ts': [1, 'seconds'],
  'src/domain/values/shard.ts': [1, 'a shard'],
  'src/domain/webhooks/retry-schedule.ts': [1, 'seconds'],
  'src/domain/webhooks/signature.ts': [1, 'a time'],
  'src/domain/webhooks/url.ts': [1, 'a port'],
  'src/store/accounts/rate-usage.ts': [1, 'a count of requests'],
  'src/store/alerts/backtest-pages.ts': [1, 'a time'],
  'src/store/alerts/backtest-subjects.ts': [1, 'a time'],
  'src/store/alerts/broadcast-facts.ts': [1, 'a time'],
  'src/store/alerts/broadcasts.ts': [4, 'times'],
  'src/store/alerts/changes.ts': [1, 'a time'],
  'src/store/alerts/hits.ts': [1, 'a time'],
  'src/store/alerts/market-rules.ts': [3, 'times'],
  'src/store/alerts/rule-candidates.ts': [
    9,
    'bounds that probe.ts widens by more than the error; decimals decide about the rules they find',
  ],
  'src/store/alerts/rule-evaluation.ts': [3, 'times'],
  'src/store/alerts/rule-rows.ts': [4, 'times'],
  'src/store/alerts/rules.ts': [1, 'a time'],
  'src/store/alerts/token-rules.ts': [1, 'a bound of the same kind as in rule-candidates.ts'],
  'src/store/journal/stamp.ts': [1, 'a sequence number'],
  'src/store/prices/checks.ts': [2, 'places and blocks of keys'],
  'src/store/series/candles.ts': [1, 'seconds'],
  'src/store/series/reads.ts': [1, 'a time'],
  'src/venues/http/age.ts': [1, 'seconds'],
  'src/venues/limitless/client.ts': [2, 'a page size and a count of rows'],
  'src/venues/polymarket/feed/book.ts': [1, 'a time'],
  'src/venues/polymarket/feed/values.ts': [1, 'a time'],
  'src/venues/polymarket/parse-book.ts': [1, 'a time'],
  'src/venues/polymarket/parse-trade.ts': [1, 'a time'],
  'src/venues/solana/parse-transaction.ts': [1, 'a version'],
  'src/venues/solana/rpc-error.ts': [1, 'a time'],
  'src/venues/venue-time.ts': [14, 'parts of a time'],
};

/** The text without comments. Strings with `//` are addresses, which contain no conversion. */
const codeOf = (text) => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(?<![:'"`])\/\/.*$/gm, '');

/** The faults of these sources, path to text: conversions without a reason, and reasons without a conversion. */
export function findFloats(sources, allowed = ALLOWED) {
  const faults = [];
  for (const [file, text] of sources) {
    const found = codeOf(text).match(CONVERSION)?.length ?? 0;
    const [count = 0] = allowed[file] ?? [];
    if (found > count) faults.push(`${file}: ${found} conversions to binary floats, ${count} of them with a reason`);
    if (found < count) faults.push(`${file}: ${found} conversions to binary floats, but a reason for ${count}`);
  }
  const missing = Object.keys(allowed).filter((file) => !sources.has(file));
  return [...faults, ...missing.map((file) => `${file}: a reason for a file that does not exist`)];
}

function read() {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).flatMap((name) =>
      name.endsWith('.ts') ? join(folder, name) : [],
    ),
  );
  return new Map(files.map((file) => [file.replaceAll('\\', '/'), readFileSync(file, 'utf8')]));
}

if (process.argv[1]?.endsWith('check-floats.mjs')) {
  const faults = findFloats(read());
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) {
    console.error('Use decimals (src/domain/values/decimal.ts), or add the reason to scripts/check-floats.mjs.');
    process.exitCode = 1;
  }
}
