import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, it } from 'vitest';
import type { TradeRecord } from '../src/domain/markets/market.ts';
import { decimal } from '../src/domain/values/decimal.ts';
import { createLogger } from '../src/observe/logger.ts';
import { Partitions } from '../src/store/db/partitions.ts';
import { sql } from '../src/store/db/tx.ts';
import { startPublisher } from '../src/store/journal/publisher.ts';
import { readJournalHead } from '../src/store/journal/read-journal.ts';
import { journalPartitions } from '../src/store/journal/retention.ts';
import { followJournal } from '../src/store/journal/tail.ts';
import { signalLanes } from '../src/store/marks/lane-signals.ts';
import { PUBLISH_KINDS } from '../src/store/marks/publish-marks.ts';
import { type TokenPrice, writePrices } from '../src/store/prices/prices.ts';
import { writeTrades } from '../src/store/series/trades.ts';
import { publishPending } from '../test/support/journal.ts';
import { createTestDatabase, type TestDatabase } from '../test/support/postgres/database.ts';
import type { Figure } from './support/figure.ts';
import { percentile, sizeOf, whole } from './support/numbers.ts';
import { note, report } from './support/report.ts';

const CHANGES = sizeOf('BENCH_CHANGES', 40_000);
const MARKETS = 10_000;
const PAGE = 500;
/** Seconds of each part at 2,000 changes/s. */
const SECONDS = sizeOf('BENCH_SECONDS', 6);
const PER_SECOND = 2_000;
/** Seconds of changes while the old snapshot stays open, before their delays are measured: BENCH_HOLD_SECONDS=3600 for an hour. */
const HOLD_SECONDS = sizeOf('BENCH_HOLD_SECONDS', 6);
/** Published marks beside the new ones: BENCH_OLD_MARKS=7200000 are those of an hour. The old snapshot keeps their slots from being emptied. */
const OLD_MARKS = sizeOf('BENCH_OLD_MARKS', 200_000);

const CATALOG = sql(
  'bench_journal_catalog',
  `WITH m AS (
     INSERT INTO market (venue, venue_market_id, title, description, tags, status, has_book, content_hash)
     SELECT 'polymarket', '0x' || md5(n::text) || md5((-n)::text), 'Will it rain on day ' || n || '?', repeat('words ', 50), '{weather}',
       'open', true, ''
     FROM generate_series(1, $1::int) n RETURNING id),
   t AS (
     INSERT INTO token (mint) SELECT '7132104567925221259462638553270691275033272857194253228963137' || lpad(n::text, 10, '0')
     FROM generate_series(1, 2 * $1::int) n RETURNING id)
   INSERT INTO outcome (token_id, market_id, ordinal, label)
   SELECT t.id, m.id, t.n % 2, CASE t.n % 2 WHEN 0 THEN 'Yes' ELSE 'No' END
   FROM (SELECT id, row_number() OVER () - 1 AS n FROM t) t JOIN (SELECT id, row_number() OVER () - 1 AS n FROM m) m ON m.n = t.n / 2`,
);
const TOKENS = sql('bench_journal_tokens', 'SELECT id, mint FROM token ORDER BY id');
const ANALYZE = sql('bench_journal_analyze', 'ANALYZE');

let test: TestDatabase;
let tokens: { id: bigint; mint: string }[];
let made = 0;
const log = createLogger({ process: 'bench', level: 'silent' });
const publishers: ReturnType<typeof startPublisher>[] = [];

beforeAll(async () => {
  test = await createTestDatabase({ poolSize: 12 });
  await test.db.query(CATALOG, [MARKETS]);
  tokens = await test.db.query(TOKENS);
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history'] as const) await partitions.ensureAroundNow(table);
  await partitions.ensure('trade', [Date.now()]);
  await test.db.query(ANALYZE);
});
afterAll(async () => {
  await Promise.all(publishers.map((publisher) => publisher.stop()));
  await test.drop();
});

function token(n: number) {
  const found = tokens[(n * 7_919) % tokens.length];
  if (!found) throw new TypeError('no tokens');
  return found;
}

/** Fresh trades of random outcomes. */
function page(count: number): TradeRecord[] {
  return Array.from({ length: count }, () => {
    made += 1;
    return {
      tradeId: `0x${made.toString(16).padStart(64, '0')}`,
      outcomeId: token(made).mint,
      tsMs: Date.now() - (made % 1_000),
      price: decimal(((made % 99) + 1) / 100),
      size: decimal(made % 1_000),
      side: 'buy' as const,
    };
  });
}

function quotes(count: number): TokenPrice[] {
  return Array.from({ length: count }, () => {
    made += 1;
    const price = decimal(((made % 99) + 1) / 100);
    return { tokenId: token(made).id, asOfMs: Date.now(), price, bid: price, ask: price };
  });
}

/** Stores half trades and half quotes. */
async function store(changes: number): Promise<void> {
  for (let done = 0; done < changes; done += 2 * PAGE) {
    await test.db.transaction((tx) => writeTrades(tx, page(PAGE), 'USD'));
    await test.db.transaction((tx) => writePrices(tx, quotes(PAGE)));
  }
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return (performance.now() - startedMs) / 1000;
}

it('publishes stored changes, against INSERT of the same rows into a table like the journal', async () => {
  await store(CHANGES);
  const seconds = await secondsOf(() => publishPending(test.db));
  const { seq } = await readJournalHead(test.db);
  await test.db.query(sql('bench_copy_table', 'CREATE TABLE copied (LIKE journal INCLUDING ALL)'));
  const bytes = (await journalPartitions(test.db)).reduce((sum, one) => sum + one.bytes, 0);
  note(`journal: ${whole(bytes / seq)} bytes per change, trades and quotes in halves`);
  const copy = sql('bench_copy', 'INSERT INTO copied SELECT * FROM journal WHERE seq > $1 AND seq <= $2');
  const copied = await secondsOf(async () => {
    for (let from = 0; from < seq; from += 2_000) await test.db.query(copy, [from, from + 2_000]);
  });
  report([
    {
      title: `publishing ${whole(seq)} stored changes of ${whole(MARKETS)} markets`,
      measured: `${whole(seq / seconds)} changes/s`,
      baseline: `INSERT ${whole(seq / copied)} rows/s`,
      ratio: copied / seconds,
      goal: { atLeast: 20_000, of: { name: 'publishing', value: seq / seconds, unit: 'changes/s' } },
    },
  ]);
});

/** The writers mark their changes, and the marks come to nothing: the cost of a row trigger is part of this baseline. */
const NO_MARK = [`CREATE FUNCTION drop_mark() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`];
const WITHOUT_MARKS = [
  'CREATE TRIGGER drop_marks BEFORE INSERT ON publish_mark FOR EACH ROW EXECUTE FUNCTION drop_mark()',
];
const WITH_MARKS = ['DROP TRIGGER drop_marks ON publish_mark'];

async function run(statements: readonly string[]): Promise<void> {
  for (const text of statements) await test.db.em.query(text);
}

function start() {
  const publisher = startPublisher({ databaseUrl: test.url, log, retentionMinutes: 120, maxBytes: 1e10 });
  publishers.push(publisher);
  return publisher;
}

/** Resolves when the journal holds everything that was committed before the call. */
async function drained(): Promise<void> {
  const [clock] = await test.db.query<{ at: Date }>(sql('bench_clock', 'SELECT clock_timestamp() AS at'));
  for (;;) {
    const { checkedAt } = await readJournalHead(test.db);
    if (checkedAt > (clock?.at ?? 0)) return;
    await delay(5);
  }
}

it('stores changes while they are published, against storing without marks', async () => {
  await store(2_000);
  await run(NO_MARK);
  const ratios: number[] = [];
  let without = 0;
  let withPublishing = 0;
  for (let pass = 0; pass < 3; pass++) {
    await run(WITHOUT_MARKS);
    without = await secondsOf(() => store(CHANGES / 2));
    await run(WITH_MARKS);
    const publisher = start();
    await drained();
    withPublishing = await secondsOf(async () => {
      await store(CHANGES / 2);
      await drained();
    });
    await publisher.stop();
    ratios.push(without / withPublishing);
  }
  report([
    {
      title: `storing ${whole(CHANGES / 2)} changes until they are published`,
      measured: `${whole(CHANGES / 2 / withPublishing)} changes/s`,
      baseline: `without marks ${whole(CHANGES / 2 / without)} changes/s`,
      ratio: percentile(ratios, 0.5),
      goal: { atLeast: 0.6 },
    },
  ]);
});

/** Bytes of WAL that the database wrote during the work. */
async function walOf(work: () => Promise<unknown>): Promise<number> {
  const position = sql('bench_wal', `SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS bytes`);
  const [before] = await test.db.query<{ bytes: number }>(position);
  await work();
  const [after] = await test.db.query<{ bytes: number }>(position);
  return (after?.bytes ?? Number.NaN) - (before?.bytes ?? Number.NaN);
}

it('writes WAL for marks and the journal, against the WAL of the changes alone', async () => {
  await run(WITHOUT_MARKS);
  const alone = await walOf(() => store(CHANGES / 2));
  await run(WITH_MARKS);
  const marked = await walOf(() => store(CHANGES / 2));
  const publishing = await walOf(() => publishPending(test.db));
  const each = (bytes: number) => `${whole(bytes / (CHANGES / 2))} bytes`;
  report([
    {
      title: 'WAL of a change, trades and quotes in halves',
      measured: `${each(marked)} with its mark, ${each(publishing)} to publish it`,
      baseline: `without marks ${each(alone)}`,
      ratio: (marked + publishing) / alone,
    },
  ]);
});

/** Stores quotes that were only seen again: no price changed, so their only mark names the facts of all their markets. */
async function seeAgain(rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    made += 1;
    const asOfMs = Date.now() + made;
    const same = tokens
      .slice(0, PAGE)
      .map(({ id }) => ({ tokenId: id, asOfMs, price: decimal('0.5'), bid: decimal('0.5'), ask: decimal('0.5') }));
    await test.db.transaction((tx) => writePrices(tx, same));
  }
}

it('names the facts of markets whose quotes were seen again, against storing without this mark', async () => {
  const rounds = Math.ceil(CHANGES / (4 * PAGE));
  await seeAgain(rounds);
  const ratios: number[] = [];
  let [without, withMark] = [0, 0];
  for (let pass = 0; pass < 5; pass++) {
    await run(WITHOUT_MARKS);
    without = await secondsOf(() => seeAgain(rounds));
    await run(WITH_MARKS);
    withMark = await secondsOf(() => seeAgain(rounds));
    ratios.push(without / withMark);
  }
  await publishPending(test.db);
  report([
    {
      title: `storing ${whole(rounds * PAGE)} quotes that were seen again, with the mark of their facts`,
      measured: `${whole((rounds * PAGE) / withMark)} quotes/s`,
      baseline: `without the mark ${whole((rounds * PAGE) / without)} quotes/s`,
      ratio: percentile(ratios, 0.5),
    },
  ]);
});

/** Stores `PER_SECOND` trades per second in pages of 20, wakes the publisher as a poller does, and reports each page that is committed. */
async function storeSteadily(seconds: number, onCommitted?: (trades: readonly TradeRecord[]) => void): Promise<void> {
  const everyMs = 10;
  const pages = (seconds * 1000) / everyMs;
  const startedMs = performance.now();
  const signals: Promise<unknown>[] = [];
  for (let n = 0; n < pages; n++) {
    const trades = page((PER_SECOND * everyMs) / 1000);
    await test.db.transaction((tx) => writeTrades(tx, trades, 'USD'));
    onCommitted?.(trades);
    signals.push(signalLanes(test.db, [], true));
    await delay(Math.max(0, startedMs + (n + 1) * everyMs - performance.now()));
  }
  await Promise.all(signals);
  note(`stored ${whole((pages * PER_SECOND * everyMs) / (performance.now() - startedMs))} trades/s`);
}

/** The delays from commit to delivery by a tail, milliseconds. */
async function delaysOf(seconds: number): Promise<number[]> {
  const committedAtMs = new Map<string, number>();
  const arrivedAtMs = new Map<string, number>();
  const tail = followJournal({ databaseUrl: test.url, pool: test.db, log });
  tail.on(({ changes }) => {
    for (const { body } of changes) arrivedAtMs.set(String(body['trade_id']), performance.now());
  });
  await drained();
  await storeSteadily(seconds, (trades) => {
    const nowMs = performance.now();
    for (const { tradeId } of trades) committedAtMs.set(tradeId, nowMs);
  });
  await drained();
  await delay(500);
  await tail.close();
  return [...committedAtMs].map(([tradeId, atMs]) => (arrivedAtMs.get(tradeId) ?? Number.NaN) - atMs);
}

it('delivers 2,000 changes/s to a tail, alone and while an old snapshot stays open', async () => {
  const publisher = start();
  const figure = (title: string, delays: readonly number[]): Figure => {
    const [p50, p99] = [percentile(delays, 0.5), percentile(delays, 0.99)];
    return {
      title: `commit to tail, ${title}`,
      measured: `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
      baseline: 'none',
      goal: { atMost: 100, of: { name: 'p99', value: p99, unit: 'ms' } },
    };
  };
  report([figure(`${whole(PER_SECOND)} trades/s`, await delaysOf(SECONDS))]);
  const client = new pg.Client({ connectionString: test.url });
  await client.connect();
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await client.query('SELECT count(*) FROM token');
  await store(CHANGES);
  await test.db.query(
    sql(
      'bench_many_heads',
      `INSERT INTO journal_head SELECT turn + n + 1000, epoch, origin, seq, oldest_seq, at, checked_at, closed_until, published
       FROM (SELECT * FROM journal_head ORDER BY turn DESC LIMIT 1) h, generate_series(1, 300000) n`,
    ),
  );
  await test.db.query(
    sql('bench_prune', 'DELETE FROM journal_head WHERE turn < (SELECT max(turn) FROM journal_head) - 1000'),
  );
  const addMarks = sql(
    'bench_old_marks',
    `INSERT INTO publish_mark (key, kind) SELECT first + n % $1::int, $2
     FROM (SELECT min(id) AS first FROM market) m, generate_series(1, $3::int) n`,
  );
  for (let made = 0; made < OLD_MARKS; made += 200_000)
    await test.db.query(addMarks, [MARKETS, PUBLISH_KINDS.market, Math.min(200_000, OLD_MARKS - made)]);
  await drained();
  await storeSteadily(HOLD_SECONDS);
  const held = `with a snapshot that is open for ${whole(HOLD_SECONDS)} s and keeps 300,000 old heads and ${whole(OLD_MARKS)} marks`;
  report([figure(held, await delaysOf(SECONDS))]);
  await client.end();
  await publisher.stop();
});
