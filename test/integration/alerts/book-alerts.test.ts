import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FeeStatement } from '../../../src/domain/markets/fee.ts';
import { type Decimal, decimal } from '../../../src/domain/values/decimal.ts';
import { createAlert, deleteAlert, findAlert, type NewAlert } from '../../../src/store/alerts/alerts.ts';
import { markWaitingBooks } from '../../../src/store/alerts/books/alert-books.ts';
import { followedMarkets } from '../../../src/store/alerts/candidates.ts';
import { changeAlert, type lockAlert as Lock, lockAlert } from '../../../src/store/alerts/changes.ts';
import { expireDueAlerts } from '../../../src/store/alerts/expiry.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { writeBooks } from '../../../src/store/series/books.ts';
import { aSubscription } from '../../factories/alerts.ts';
import { aStoredMarket, type TestMarket } from '../../factories/stored-market.ts';
import { evaluateAsFormerly } from '../../support/alerts/former-alerter.ts';
import { drain } from '../../support/drain.ts';
import { gate } from '../../support/gate.ts';
import { publishPending } from '../../support/journal.ts';
import { NEXT_MILLISECOND, useAlertDesk } from './alert-desk.ts';

const FEE = sql(
  'test_fee',
  `WITH kept AS (
     INSERT INTO fee_statement (hash, statement) VALUES (sha256(convert_to($2::text, 'UTF8')), $2::jsonb)
     ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash RETURNING id)
   INSERT INTO market_fee (market_id, known_at, fee_id) SELECT $1::bigint, clock_timestamp() - interval '1 day', id FROM kept`,
);
const BODY = sql(
  'test_body',
  `SELECT e.body, a.status, (SELECT count(*)::int FROM alert_firing f WHERE f.alert_pk = a.pk) AS firings,
     (SELECT count(*)::int FROM alert_book b WHERE b.alert_pk = a.pk) AS cursors,
     (SELECT count(*)::int FROM delivery d WHERE d.event_pk = e.pk) AS deliveries
   FROM alert a LEFT JOIN event e ON e.id = a.event_id WHERE a.pk = $1`,
);
const FORGET_MARKS = sql('test_forget_marks', `DELETE FROM mark WHERE stage = 'evaluate-alerts'`);
const MARKS = sql('test_count_marks', `SELECT count(*)::int AS n FROM mark WHERE stage = 'evaluate-alerts'`);
const END = sql(
  'test_end_alert',
  `UPDATE alert SET expires_at = clock_timestamp() - interval '1 minute', created_at = created_at - interval '1 hour' WHERE pk = $1`,
);
const SETTLE = sql('test_settle_market', `UPDATE market SET status = 'resolved' WHERE id = $1`);

const FREE: FeeStatement = { periods: [{ rule: { model: 'none' } }] };
const desk = useAlertDesk();
let market: TestMarket;
let other: TestMarket;
let asOfMs = Date.now();
beforeAll(async () => {
  await new Partitions(desk.db).ensureAroundNow('book_history');
  await aSubscription(desk.db, { accountId: desk.accountId });
});
beforeEach(async () => {
  market = await aStoredMarket(desk.db);
  other = await aStoredMarket(desk.db, { venue: 'kalshi' });
  for (const { pk } of [market, other]) await desk.db.query(FEE, [pk, JSON.stringify(FREE)]);
});

const tokenOf = ({ outcomes }: TestMarket) => outcomes[0]?.tokenId ?? 0n;
const mintOf = ({ outcomes }: TestMarket) => outcomes[0]?.outcomeId ?? '';

async function book(of: TestMarket, bid: string, ask: string): Promise<void> {
  asOfMs += 1_000;
  const side = (price: string) => [{ price: decimal(price), size: decimal('100') }];
  await desk.db.transaction((tx) =>
    writeBooks(tx, [{ tokenId: tokenOf(of), asOfMs, bids: side(bid), asks: side(ask) }]),
  );
  await desk.db.query(NEXT_MILLISECOND);
}

async function alert(over: Partial<NewAlert> = {}): Promise<bigint> {
  const request = { condition: 'executable', side: 'buy', direction: 'at_most', tokenMint: mintOf(market) } as const;
  const order = { size: decimal('50'), target: decimal('0.6') };
  const made = await desk.db.transaction((tx) => createAlert(tx, desk.accountId, { ...request, ...order, ...over }));
  if (made.outcome !== 'created') throw new Error(made.outcome);
  return made.alert.pk;
}

const net = (): Promise<bigint> =>
  alert({
    ...{ condition: 'net_difference', sellTokenMint: mintOf(other), target: decimal('0.02') },
    ...{ side: undefined, direction: undefined },
  });

interface State {
  body: string | null;
  status: string;
  firings: number;
  cursors: number;
  deliveries: number;
}

async function stateOf(pk: bigint): Promise<Omit<State, 'body'> & { data?: Record<string, unknown> }> {
  const [row] = await desk.db.query<State>(BODY, [pk]);
  if (!row) throw new TypeError('no alert');
  const { body, ...state } = row;
  return { ...state, ...(body !== null && { data: (JSON.parse(body) as { data: Record<string, unknown> }).data }) };
}

/** A claim of the publisher, and the evaluation of its marks. */
async function settle(): Promise<void> {
  await publishPending(desk.db);
  await desk.evaluate();
}

const change = (pk: bigint, fields: Parameters<typeof changeAlert>[3]) =>
  desk.db.transaction(async (tx) => {
    const [row] = await tx.query<{ id: string }>(sql('test_id', 'SELECT id FROM alert WHERE pk = $1'), [pk]);
    const locked = (await lockAlert(tx, desk.accountId, row?.id ?? '')) as NonNullable<
      Awaited<ReturnType<typeof Lock>>
    >;
    return changeAlert(tx, desk.accountId, locked, fields);
  });

describe('an alert on an order', () => {
  it('sends its event when a claim of the publisher names a changed book', async () => {
    const pk = await alert();
    await settle();
    await book(market, '0.5', '0.7');
    await settle();
    expect(await stateOf(pk)).toMatchObject({ status: 'active', firings: 0, cursors: 1 });
    await book(market, '0.5', '0.6');
    await settle();
    expect(await stateOf(pk)).toMatchObject({
      ...{ status: 'triggered', firings: 1, cursors: 0, deliveries: 1 },
      data: {
        ...{ condition: 'executable', side: 'buy', size: 50, targetPrice: 0.6, direction: 'at_most' },
        ...{
          priceWithFee: 0.6,
          averagePrice: 0.6,
          fee: 0,
          bookAgeMs: 0,
          tokenMint: mintOf(market),
          title: 'Will it rain?',
        },
      },
    });
  });

  it('sees the book in effect at its start', async () => {
    await book(market, '0.5', '0.6');
    const pk = await alert();
    await desk.evaluate();
    expect(await stateOf(pk)).toMatchObject({ status: 'triggered', firings: 1 });
  });

  it.each(['before', 'after'] as const)('fires on a book whose writer commits %s the alert', async (order) => {
    const written = gate();
    const mayCommit = gate();
    asOfMs += 1_000;
    const side = [{ price: decimal('0.55'), size: decimal('100') }];
    const writing = desk.db.transaction(async (tx) => {
      await writeBooks(tx, [{ tokenId: tokenOf(market), asOfMs, bids: [], asks: side }]);
      written.open();
      await mayCommit.opened;
    });
    await written.opened;
    if (order === 'before') {
      mayCommit.open();
      await writing;
      await publishPending(desk.db);
    }
    const pk = await alert();
    await desk.evaluate();
    mayCommit.open();
    await writing;
    await settle();
    expect(await stateOf(pk)).toMatchObject({ status: 'triggered', firings: 1 });
  });

  it('fires when a publisher and an alerter of the former release take its marks', async () => {
    const pk = await alert();
    await book(market, '0.5', '0.55');
    await publishPending(desk.db);
    const limits = { fired: 100, firedPerToken: 100, expired: 100 };
    await drain(desk.db, 'evaluate-alerts', { limit: 100, order: 'oldest' }, (tx, marks) =>
      evaluateAsFormerly(tx, marks, limits),
    );
    expect(await stateOf(pk)).toMatchObject({ status: 'active', firings: 0 });
    expect(await markWaitingBooks(desk.db)).toHaveLength(1);
    expect(await markWaitingBooks(desk.db)).toHaveLength(0);
    await desk.evaluate();
    expect(await stateOf(pk)).toMatchObject({ status: 'triggered', firings: 1 });
  });

  it('has a mark for its outcome only, and none after its end', async () => {
    await publishPending(desk.db);
    await desk.db.query(FORGET_MARKS);
    await book(market, '0.5', '0.7');
    expect((await publishPending(desk.db)).map(({ alertedShards }) => alertedShards)).toEqual([null]);
    const pk = await alert({ target: decimal('0.1') });
    await desk.evaluate();
    await book(market, '0.5', '0.71');
    await book(other, '0.5', '0.7');
    expect((await publishPending(desk.db)).map(({ alertedShards }) => alertedShards?.length)).toEqual([1]);
    expect(await desk.db.query(MARKS)).toEqual([{ n: 1 }]);
    await desk.evaluate();
    const found = await desk.db.query<{ id: string }>(sql('test_id', 'SELECT id FROM alert WHERE pk = $1'), [pk]);
    expect(await deleteAlert(desk.db, desk.accountId, found[0]?.id ?? '')).toBe(true);
    await book(market, '0.5', '0.72');
    expect((await publishPending(desk.db)).map(({ alertedShards }) => alertedShards)).toEqual([null]);
    expect(await findAlert(desk.db, desk.accountId, found[0]?.id ?? '')).toBeNull();
  });

  it('judges books from before a pause and a change by the former terms', async () => {
    const paused = await alert();
    const changed = await alert();
    await desk.evaluate();
    await book(market, '0.5', '0.6');
    await change(paused, { status: 'paused' });
    expect(await change(changed, { target: decimal('0.2') })).toMatchObject({ outcome: 'changed' });
    await book(market, '0.1', '0.3');
    await settle();
    expect(await stateOf(paused)).toMatchObject({ status: 'triggered', firings: 1, data: { priceWithFee: 0.6 } });
    expect(await stateOf(changed)).toMatchObject({ firings: 1, data: { priceWithFee: 0.6, targetPrice: 0.6 } });
  });

  it('does not fire on books of a pause, and watches again after it', async () => {
    const pk = await alert({ target: decimal('0.3'), cooldownSeconds: 1 });
    await book(market, '0.5', '0.6');
    await settle();
    await change(pk, { status: 'paused' });
    await book(market, '0.1', '0.25');
    await settle();
    expect(await stateOf(pk)).toMatchObject({ status: 'paused', firings: 0 });
    await change(pk, { status: 'active', size: decimal('200') });
    await settle();
    expect(await stateOf(pk)).toMatchObject({ status: 'active', firings: 0, cursors: 1 });
    await change(pk, { size: decimal('100') });
    await settle();
    expect(await stateOf(pk)).toMatchObject({ firings: 1, data: { size: 100, priceWithFee: 0.25 } });
  });

  it('expires at its end only when its books are judged', async () => {
    const pk = await alert();
    await desk.evaluate();
    await book(market, '0.5', '0.7');
    await desk.db.query(END, [pk]);
    expect((await expireDueAlerts(desk.db)).alerts).toEqual([]);
    await settle();
    expect((await expireDueAlerts(desk.db)).alerts).toHaveLength(1);
    expect(await stateOf(pk)).toMatchObject({ status: 'expired', cursors: 0 });
  });
});

describe('an alert on two orders', () => {
  it('fires when the second book moves, and states the age of both', async () => {
    const pk = await net();
    await book(market, '0.4', '0.5');
    await settle();
    await book(other, '0.52', '0.6');
    await settle();
    expect(await stateOf(pk)).toMatchObject({
      ...{ status: 'triggered', firings: 1, cursors: 0 },
      data: {
        ...{ condition: 'net_difference', size: 50, targetPrice: 0.02, net: 0.02, sellTokenMint: mintOf(other) },
        buy: { priceWithFee: 0.5, averagePrice: 0.5, fee: 0, bookAgeMs: expect.any(Number) },
        sell: { priceWithFee: 0.52, averagePrice: 0.52, fee: 0, bookAgeMs: 0 },
        sellVenue: 'kalshi',
      },
    });
  });

  it('follows both markets, until either has a result', async () => {
    const pk = await net();
    await desk.evaluate();
    const pks = [market.pk, other.pk];
    expect(new Set(await followedMarkets(desk.db, pks))).toEqual(new Set(pks));
    await desk.db.query(SETTLE, [market.pk]);
    await markWaitingBooks(desk.db);
    await desk.evaluate();
    expect(await stateOf(pk)).toMatchObject({ status: 'expired', cursors: 0 });
    expect(await followedMarkets(desk.db, pks)).toEqual([]);
  });
});

describe('createAlert', () => {
  const refusal = async (over: Partial<NewAlert>) => alert(over).then(String, (error: Error) => error.message);

  it('refuses an order that no book can fill', async () => {
    expect(await refusal({ tokenMint: 'unknown' })).toBe('no_book');
    const withoutBook = await aStoredMarket(desk.db, { hasBook: false });
    expect(await refusal({ tokenMint: mintOf(withoutBook) })).toBe('no_book');
    expect(await refusal({ size: '1.001' as Decimal })).toBe('too_fine_size');
    await desk.db.query(sql('test_mana', `UPDATE token SET currency = 'MANA' WHERE id = $1`), [tokenOf(other)]);
    expect(await net().then(String, (error: Error) => error.message)).toBe('different_currencies');
  });
});
