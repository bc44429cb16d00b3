#!/usr/bin/env node
// Prices, sizes and amounts are decimals (src/domain/values/decimal.ts). A conversion of a text into a binary float loses digits, so each
// `Number(` and `parseFloat(` in these folders needs a reason here: the file, the number of conversions, and their subject. So does each
// binary float in the SQL of the store.
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
  'src/domain/alerts/conditions.ts': [1, 'seconds of a window'],
  'src/domain/alerts/windows.ts': [1, 'the same approximation of a standing price'],
  'src/domain/chat/chat-request.ts': [1, 'the id of a thread'],
  'src/domain/markets/volume-witness.ts': [1, 'a share of at most nine digits'],
  'src/domain/values/base58.ts': [1, 'a digit'],
  'src/domain/values/decimal.ts': [1, 'an exponent'],
  'src/domain/values/exact-json.ts': [1, 'asks whether a number survives the conversion'],
  'src/domain/values/password.ts': [3, 'costs of a hash'],
  'src/domain/values/retry-after.ts': [1, 'seconds'],
  'src/domain/values/shard.ts': [1, 'a shard'],
  'src/domain/webhooks/signature.ts': [1, 'a time'],
  'src/domain/webhooks/url.ts': [1, 'a port'],
  'src/store/accounts/archive-use.ts': [2, 'bytes'],
  'src/store/accounts/rate-usage.ts': [1, 'a count of requests'],
  'src/store/archive/export-history.ts': [1, 'bytes and a time'],
  'src/store/archive/check.ts': [1, 'bytes'],
  'src/store/archive/file-list.ts': [3, 'bytes and counts of rows'],
  'src/store/alerts/backtest/pages.ts': [1, 'a time'],
  'src/store/alerts/backtest/subjects.ts': [1, 'a time'],
  'src/store/alerts/books/judge-books.ts': [7, 'times'],
  'src/store/alerts/books/read-books.ts': [2, 'times'],
  'src/store/alerts/broadcasts/facts.ts': [2, 'times'],
  'src/store/alerts/broadcasts/broadcasts.ts': [4, 'times'],
  'src/store/alerts/candidates.ts': [2, 'times'],
  'src/store/alerts/changes.ts': [1, 'a time'],
  'src/store/alerts/evaluate.ts': [3, 'times'],
  'src/store/alerts/firings.ts': [2, 'times'],
  'src/store/alerts/market-rules.ts': [3, 'times'],
  'src/store/alerts/probes.ts': [
    9,
    'bounds that condition.ts widens by more than the error; decimals decide about the rules they find',
  ],
  'src/store/alerts/rules.ts': [4, 'times'],
  'src/store/alerts/token-rules.ts': [1, 'a bound of the same kind as in probes.ts'],
  'src/store/journal/read-journal.ts': [1, 'a sequence number'],
  'src/store/marks/lane-signals.ts': [1, 'a lane'],
  'src/store/prices/checks.ts': [2, 'places and blocks of keys'],
  'src/store/prices/confirmations.ts': [1, 'blocks of keys'],
  'src/store/series/candles.ts': [1, 'seconds'],
  'src/store/series/export.ts': [1, 'a time'],
  'src/store/series/reads.ts': [1, 'a time'],
  'src/venues/http/age.ts': [1, 'seconds'],
  'src/venues/limitless/client.ts': [2, 'a page size and a count of rows'],
  'src/venues/polymarket/feed/book.ts': [1, 'a time'],
  'src/venues/polymarket/feed/feed.ts': [1, 'a time'],
  'src/venues/polymarket/feed/values.ts': [1, 'a time'],
  'src/venues/polymarket/fees.ts': [1, 'an exponent'],
  'src/venues/polymarket/fetch-resolutions.ts': [1, 'a time'],
  'src/venues/polymarket/parse-book.ts': [2, 'times'],
  'src/venues/polymarket/parse-trade.ts': [1, 'a time'],
  'src/venues/solana/parse-transaction.ts': [1, 'a version'],
  'src/venues/solana/rpc-error.ts': [1, 'a time'],
  'src/venues/venue-time.ts': [14, 'parts of a time'],
};

const SQL_FOLDER = 'src/store/';
/** Released migrations never change. */
const MIGRATIONS = 'src/store/db/migrations/';
const SQL_FLOAT = /\bfloat[48]?\b|\bdouble precision\b|::(?:real|double)\b/g;

/** @type {Readonly<Record<string, readonly [count: number, reason: string]>>} */
const ALLOWED_SQL = {
  'src/store/alerts/backtest/subjects.ts': [2, 'times'],
  'src/store/alerts/probes.ts': [
    4,
    'bounds that condition.ts widens by more than the error; decimals decide about the rules they find',
  ],
  'src/store/alerts/windows.ts': [1, 'a time'],
  'src/store/archive/catalog.ts': [5, 'counts, sizes and milliseconds'],
  'src/store/catalog/host-budgets.ts': [5, 'times of requests'],
  'src/store/catalog/market-versions.ts': [4, 'a time'],
  'src/store/catalog/market-heat.ts': [1, 'ages'],
  'src/store/catalog/market-resolutions.ts': [2, 'times'],
  'src/store/catalog/market-fees.ts': [4, 'times and an age'],
  'src/store/catalog/market-rows.ts': [1, 'an age'],
  'src/store/catalog/market-rules.ts': [3, 'times'],
  'src/store/catalog/market-search.ts': [1, 'the similarity of two texts, which pg_trgm computes as a float'],
  'src/store/catalog/poll-state.ts': [6, 'times'],
  'src/store/catalog/quarantine.ts': [2, 'counts'],
  'src/store/coverage/evidence.ts': [1, 'times'],
  'src/store/coverage/reads.ts': [6, 'times'],
  'src/store/coverage/settle.ts': [8, 'times'],
  'src/store/coverage/totals.ts': [7, 'times'],
  'src/store/archive/file-list.ts': [1, 'bytes'],
  'src/store/archive/past.ts': [2, 'times'],
  'src/store/db/partitions.ts': [2, 'times'],
  'src/store/db/database-clock.ts': [1, 'a time'],
  'src/store/db/entities/webhook-subscription.ts': [1, 'a rate of requests'],
  'src/store/db/tx.ts': [1, 'whole milliseconds'],
  'src/store/db/presence.ts': [1, 'a time'],
  'src/store/deliveries/outcomes.ts': [1, 'durations'],
  'src/store/deliveries/due.ts': [4, 'an age and times of permits'],
  'src/store/feeds/gaps.ts': [6, 'times'],
  'src/store/feeds/markets.ts': [2, 'a time'],
  'src/store/feeds/parts.ts': [1, 'a time'],
  'src/store/feeds/streamers.ts': [2, 'messages per second and a lag'],
  'src/store/journal/claim.ts': [3, 'sequence numbers, which are exact up to 2^53, and an age'],
  'src/store/journal/read-journal.ts': [3, 'sequence numbers, which are exact up to 2^53'],
  'src/store/journal/retention.ts': [2, 'bytes and minutes'],
  'src/store/marks/backlog.ts': [3, 'ages and bytes'],
  'src/store/ops/heartbeats.ts': [1, 'an age'],
  'src/store/ops/markets.ts': [1, 'a start of a bucket'],
  'src/store/ops/overview.ts': [7, 'times, ages and counts of rows'],
  'src/store/ops/restored-data.ts': [1, 'an age'],
  'src/store/deliveries/webhook-figures.ts': [1, 'a start of an hour'],
  'src/store/series/candle-audit.ts': [1, 'a start of a bucket'],
  'src/store/series/candle-refold.ts': [4, 'counts'],
  'src/store/series/feed-faults.ts': [3, 'times'],
  'src/store/series/market-series.ts': [6, 'times'],
  'src/store/series/book-reads.ts': [6, 'ages and times'],
  'src/store/series/price-reads.ts': [5, 'a time'],
  'src/store/series/quoted-markets.ts': [1, 'a time'],
  'src/store/series/reads.ts': [5, 'times'],
  'src/store/series/trade-history.ts': [1, 'a count'],
  'src/store/series/trade-repairs.ts': [5, 'a time, counts, and the volumes of a log line'],
  'src/store/series/trade-reread.ts': [7, 'counts and times'],
  'src/store/series/trade-walks.ts': [2, 'a count and an age'],
  'src/store/series/trade-witness.ts': [16, 'times, and a share that is rounded in decimals first'],
  'src/store/series/trades.ts': [2, 'times'],
  'src/store/series/venue-backfill.ts': [1, 'a count'],
};

/** The text without comments. Strings with `//` are addresses, which contain no conversion. */
const codeOf = (text) => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(?<![:'"`])\/\/.*$/gm, '');

/** The faults of these sources, path to text: floats without a reason, and reasons without a float. */
export function findFloats(sources, allowed = ALLOWED, allowedSql = ALLOWED_SQL) {
  const faults = [];
  const compare = (file, found, [count = 0] = [], what) => {
    if (found > count) faults.push(`${file}: ${found} ${what}, ${count} of them with a reason`);
    if (found < count) faults.push(`${file}: ${found} ${what}, but a reason for ${count}`);
  };
  for (const [file, text] of sources) {
    const code = codeOf(text);
    compare(file, code.match(CONVERSION)?.length ?? 0, allowed[file], 'conversions to binary floats');
    if (!file.startsWith(SQL_FOLDER) || file.startsWith(MIGRATIONS)) continue;
    compare(file, code.match(SQL_FLOAT)?.length ?? 0, allowedSql[file], 'binary floats in SQL');
  }
  const missing = Object.keys({ ...allowed, ...allowedSql }).filter((file) => !sources.has(file));
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
