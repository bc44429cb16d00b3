import { beforeAll, describe, expect, it } from 'vitest';
import { enabledVenues } from '../../../../api/reads/venue-catalog.ts';
import { createStreamCursors, frameOf, jsonOf } from '../../../../api/streams/frame.ts';
import { readSnapshot } from '../../../../api/streams/snapshot.ts';
import type { BookRecord, TradeRecord } from '../../../../src/domain/markets/market.ts';
import { createCursorCodec } from '../../../../src/domain/values/cursor.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { closeGaps, openGap } from '../../../../src/store/feeds/gaps.ts';
import { readJournalHead } from '../../../../src/store/journal/read-journal.ts';
import { markMarkets } from '../../../../src/store/marks/publish-marks.ts';
import { writePrices } from '../../../../src/store/prices/prices.ts';
import { writeBooks } from '../../../../src/store/series/books.ts';
import { foldCandles } from '../../../../src/store/series/candles.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { storedSnapshots } from '../../../factories/stored-series.ts';
import { changesAfter, publishPending } from '../../../support/journal.ts';
import { type Client, startTestApi, useTestApi } from '../api-harness.ts';

/** The start of the minute of the run. Times of the golden file are relative to it, except those of 2024. */
const BASE = Math.floor(Date.now() / 60_000) * 60;
/** A minute that is not over at the end of the test. */
const LATER = BASE + 900;
/** The clock of Postgres is not that of the test; one trade is of an earlier release. */
const SET_RECEIPTS = sql(
  'test_wire_receipts',
  `UPDATE trade SET received_at = CASE WHEN trade_id <> '2' THEN ts + interval '2.9 seconds' END`,
);
const POLL_MS = { markets: 60_000, prices: 5_000, books: 5_000, trades: 2_000 };
const GAP = '0199d3a0-0000-7000-8000-000000000001';

const api = useTestApi({ venues: enabledVenues(['polymarket', 'manifold'], POLL_MS) });
let client: Client;
let full: TestMarket;
let play: TestMarket;

beforeAll(async () => {
  client = await api.client();
  for (const table of ['observation', 'price_history', 'book_history'] as const) {
    await new Partitions(api.db).ensureAroundNow(table);
  }
  await new Partitions(api.db).ensure('trade', [BASE * 1_000, (BASE - 3_600) * 1_000, LATER * 1_000]);
  await writeMarkets();
  await writeQuotes();
  await writeTape();
  await writeGaps();
});

const on2024 = (day: number, hour = 0) => new Date(Date.UTC(2024, 0, day, hour, 30, 15, 987));

async function writeMarkets(): Promise<void> {
  const { db } = api;
  full = await aStoredMarket(db, {
    marketId: 'full',
    eventId: 'e-1',
    eventTitle: 'Weather of "Oslo"',
    siblingLabel: 'Rain\n& snow',
    title: 'Will it rain – or snow?',
    description: 'Long text.',
    resolutionCriteria: 'By the gauge.',
    category: 'Weather',
    tags: ['oslo', 'é'],
    createdAt: on2024(1),
    openAt: on2024(2),
    closeAt: on2024(3, 23),
    url: 'https://example.com/m?a=1&b=2',
    stats: ['1234567890.123456789000', '0', '0.50'],
  });
  const bare = await aStoredMarket(db, { marketId: 'bare', labels: [], status: 'created', stats: [null, null, null] });
  // Of several markets with negative risk, exactly one resolves to yes.
  const negative = { eventId: 'e-2', eventTitle: 'Who wins?', title: 'Winner?' };
  const ann = await aStoredMarket(db, { ...negative, marketId: 'ann', siblingLabel: 'Ann', status: 'halted' });
  const bob = await aStoredMarket(db, {
    ...negative,
    marketId: 'bob',
    siblingLabel: 'Bob',
    status: 'resolved',
    resolution: 'yes',
    winningOutcomeId: 'bob:yes',
    resolvedAt: on2024(5),
    stats: ['12.50', null, null],
  });
  const settled = await aStoredMarket(db, { marketId: 'settled', status: 'settled', closeAt: on2024(4) });
  const labels = ['A', 'B', 'C', 'D', 'E'];
  play = await aStoredMarket(db, {
    venue: 'manifold',
    marketId: 'play',
    labels,
    hasBook: false,
    stats: ['1000', '7', '1e3'],
  });
  await db.transaction((tx) =>
    markMarkets(
      tx,
      [full, bare, ann, bob, settled, play].map(({ pk }) => pk),
    ),
  );
}

async function writeQuotes(): Promise<void> {
  const quotes = [
    { of: full, n: 0, price: '0.410', bid: '0.40', ask: '0.42' },
    { of: full, n: 1, price: '0.000000000000000001' },
    { of: play, n: 0, price: '0', ask: '0.1' },
    { of: play, n: 1, price: '1', bid: '0.999' },
    { of: play, n: 2, price: '1.000000000000000001', bid: '-2.5', ask: '12345678901234567890.5' },
    { of: play, n: 3, price: '-0.5' },
  ];
  for (const { of, n, price, bid, ask } of quotes) {
    const quote = {
      tokenId: of.outcomes[n]?.tokenId ?? 0n,
      asOfMs: (BASE - 200 + n) * 1_000 + 999,
      price: decimal(price),
      ...(bid !== undefined && { bid: decimal(bid) }),
      ...(ask !== undefined && { ask: decimal(ask) }),
    };
    await api.db.transaction((tx) => writePrices(tx, [quote]));
  }
  await storedSnapshots(api.db, full.outcomes[0]?.tokenId ?? 0n, [
    { ts: BASE - 240, price: '0.40' },
    { ts: BASE - 180, price: '0.41', bid: '0.400', ask: '0.43' },
  ]);
  const level = (price: string, size: string, count?: number) => ({
    price: decimal(price),
    size: decimal(size),
    ...(count !== undefined && { count }),
  });
  const books: [TestMarket, number, Pick<BookRecord, 'bids' | 'asks'>][] = [
    [full, 0, { bids: [level('0.40', '5'), level('0.39', '7.25')], asks: [level('0.425', '1000000.000001', 3)] }],
    [full, 1, { bids: [], asks: [level('0.6', '1')] }],
    [play, 0, { bids: [level('0.1', '2', 0)], asks: [] }],
    [play, 1, { bids: [], asks: [] }],
    [play, 2, { bids: [level('0.30', '1')], asks: [level('0.25', '1')] }],
  ];
  for (const [market, n, sides] of books) {
    const tokenId = market.outcomes[n]?.tokenId ?? 0n;
    await api.db.transaction((tx) => writeBooks(tx, [{ tokenId, asOfMs: (BASE - 100 + n) * 1_000, ...sides }]));
  }
}

async function writeTape(): Promise<void> {
  const trade = (tradeId: string, ts: number, price: string, size: string, side?: 'buy' | 'sell'): TradeRecord => ({
    tradeId,
    outcomeId: 'full:yes',
    tsMs: ts * 1_000 + 0.25,
    price: decimal(price),
    size: decimal(size),
    ...(side !== undefined && { side }),
  });
  const tape = [
    trade('old', BASE - 3_600, '0.3', '1', 'buy'),
    trade('"1"', BASE - 120, '0.510', '2', 'buy'),
    trade('2', BASE - 110, '0.52', '0.000001', 'sell'),
    trade('3', LATER, '0.5', '98765432109876543210'),
  ];
  const tokenId = full.outcomes[0]?.tokenId ?? 0n;
  await api.db.transaction((tx) => writeTrades(tx, tape, 'USD'));
  await api.db.query(SET_RECEIPTS);
  for (const minute of [BASE - 3_600, BASE - 120, LATER]) {
    await api.db.transaction((tx) => foldCandles(tx, [{ id: 1n, key: tokenId, detail: BigInt(minute) }]));
  }
}

async function writeGaps(): Promise<void> {
  const gap = { venue: 'polymarket', marketPks: [full.pk] };
  const opened = { gap: GAP, affected: 'books', reason: 'silent', fromMs: (BASE - 50) * 1_000 + 100 };
  await api.db.transaction((tx) => openGap(tx, { ...gap, ...opened }));
  await api.db.transaction((tx) => closeGaps(tx, { ...gap, toMs: (BASE - 40) * 1_000 + 100 }));
}

/** Replaces the differences between two runs: the time of the run, and moments that the database sets. */
function comparable(text: string): string {
  return text.replace(/"(updated_at|at)":("[^"]*"|\d+)/g, '"$1":…').replace(/\b\d{10}\b/g, (digits) => {
    const distance = Number(digits) - BASE;
    return Math.abs(distance) > 7_200 ? digits : `${distance < 0 ? '' : '+'}${distance}`;
  });
}

/** The answers, without `meta`. */
async function answers(url: string): Promise<string[]> {
  const range = `interval=1m&start=${BASE - 300}&end=${LATER + 300}`;
  const paths = [
    ...['full', 'bare', 'ann', 'bob', 'settled'].map((id) => `polymarket/markets/${id}`),
    'manifold/markets/play',
    'polymarket/markets?sort=volume_24h&limit=3',
    'polymarket/events/e-2',
    'polymarket/markets/full/prices',
    'polymarket/markets/bare/prices',
    'manifold/markets/play/prices',
    'polymarket/prices?market_ids=full,bare',
    ...['full:yes', 'full:no'].map((id) => `polymarket/markets/full/orderbook?depth=1&outcome_id=${id}`),
    'polymarket/markets/full/orderbook',
    `polymarket/markets/full/trades?start=${BASE - 300}&end=${LATER + 300}`,
    `polymarket/markets/full/candles?${range}`,
    `polymarket/markets/full/snapshots?interval=1m&start=${BASE - 240}&end=${BASE - 120}`,
  ];
  const lines: string[] = [];
  for (const path of paths) {
    const response = await fetch(`${url}/v1/${path}`, { headers: { authorization: `Bearer ${client.key}` } });
    const text = (await response.text()).replace(/,"meta":.*$/s, '');
    lines.push(comparable(`GET ${path} ${response.status} ${text}`));
  }
  return lines;
}

describe.each(['number', 'string'] as const)(
  'the fields of answers and messages as DECIMAL_FORMAT=%s',
  (decimalFormat) => {
    it('keep their bytes', async () => {
      const beside = await startTestApi(
        { venues: api.deps.venues, decimalFormat, now: () => BASE * 1_000 },
        { beside: api },
      );
      const lines = await answers(beside.url).finally(() => beside.close());
      await publishPending(api.db);
      const cursors = createStreamCursors(createCursorCodec(Buffer.alloc(32, 1)));
      const head = await readJournalHead(api.db);
      for (const change of await changesAfter(api.db)) {
        if (decimalFormat === 'number') lines.push(comparable(`CHANGE ${change.kind} ${JSON.stringify(change.body)}`));
        lines.push(comparable(`MESSAGE ${jsonOf(frameOf(change, { cursors, epoch: head.epoch, decimalFormat }))}`));
      }
      const filter = { venue: 'all', venues: ['polymarket', 'manifold'], marketIds: new Set(['full', 'play', 'bare']) };
      const shown = { head, seq: 1, cursor: '', decimalFormat };
      const snapshots = await readSnapshot(api.db, { ...filter, channels: new Set(['prices']) } as never, shown);
      for (const message of snapshots) lines.push(comparable(`SNAPSHOT ${jsonOf(message)}`));
      await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(`golden/wire-${decimalFormat}.txt`);
    });
  },
);
