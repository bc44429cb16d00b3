import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import type { OutcomePayout, ResolutionStep } from '../../../../src/domain/markets/resolution.ts';
import { decimal, ONE, ZERO } from '../../../../src/domain/values/decimal.ts';
import { readMarketChanges } from '../../../../src/store/alerts/market-rules.ts';
import { findMarket } from '../../../../src/store/catalog/market-reads.ts';
import {
  listResolutions,
  readTimeline,
  republishResolutions,
} from '../../../../src/store/catalog/market-resolutions.ts';
import { missingMarkets, noteAnnounced } from '../../../../src/store/catalog/market-sightings.ts';
import { findMarketAt } from '../../../../src/store/catalog/market-versions.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { PUBLISH_KINDS } from '../../../../src/store/marks/publish-marks.ts';
import { writePrices } from '../../../../src/store/prices/prices.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { changesAfter, publishPending } from '../../../support/journal.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const PRICES = sql(
  'test_prices',
  `SELECT t.mint, l.price FROM latest_price l JOIN token t ON t.id = l.token_id JOIN outcome o ON o.token_id = t.id
   JOIN market m ON m.id = o.market_id WHERE m.venue_market_id = $1 ORDER BY o.ordinal`,
);
const PAYOUTS = sql(
  'test_payouts',
  'SELECT o.payout FROM outcome o JOIN market m ON m.id = o.market_id WHERE m.venue_market_id = $1 ORDER BY o.ordinal',
);
const TOKENS = sql(
  'test_tokens',
  'SELECT o.token_id FROM outcome o JOIN market m ON m.id = o.market_id WHERE m.venue_market_id = $1 ORDER BY o.ordinal',
);
/** What a process of the former release writes when it takes a disputed result for a determined one. */
const FORMER_MARKET = sql(
  'test_former_market',
  `UPDATE market SET status = $2, winning_outcome_id = venue_market_id || ':yes', resolution = 'outcome', content_hash = '\\xff', updated_at = clock_timestamp()
   WHERE venue_market_id = $1`,
);
const FORMER_OUTCOMES = sql(
  'test_former_outcomes',
  `UPDATE outcome SET payout = CASE WHEN ordinal = 0 THEN 1 ELSE 0 END WHERE market_id = (SELECT id FROM market WHERE venue_market_id = $1)`,
);
/** What it writes when the venue takes a result back: the hash of an open market is that of this release. */
const FORMER_REOPENED = sql(
  'test_former_reopened',
  `UPDATE market SET status = 'open', winning_outcome_id = NULL, resolution = NULL, content_hash = $2, updated_at = clock_timestamp()
   WHERE venue_market_id = $1`,
);
const HASH = sql('test_market_hash', 'SELECT content_hash AS hash FROM market WHERE venue_market_id = $1');
const NOTED = sql(
  'test_former_results',
  'SELECT f.venue FROM former_result f JOIN market m ON m.id = f.market_id WHERE m.venue_market_id = $1',
);
const DROP_MARK = sql(
  'test_drop_mark',
  `DELETE FROM publish_mark WHERE kind = ${PUBLISH_KINDS.resolution} AND key = (SELECT id FROM market WHERE venue_market_id = $1)`,
);
const STORED_KINDS = sql(
  'test_stored_kinds',
  `SELECT DISTINCT kind FROM journal WHERE market_id = $1 AND kind NOT IN ('market', 'price')`,
);
const DROP_MARKS = sql('test_drop_marks', `DELETE FROM publish_mark WHERE kind = ${PUBLISH_KINDS.resolution}`);
const AGE = sql('test_age', `UPDATE market_resolution SET received_at = received_at - interval '2 minutes'`);

const NOW = Date.UTC(2026, 2, 1);
const test = useTestDatabase({ poolSize: 4 });
let id = '';
let made = 0;
let nowMs = NOW;
beforeAll(() => new Partitions(test.db).ensureAroundNow('price_history'));
beforeEach(() => {
  made += 1;
  id = `m${made}`;
  nowMs += 1_000;
});

const paid = (yes = ONE): OutcomePayout[] => [
  { outcomeId: `${id}:yes`, payout: yes },
  { outcomeId: `${id}:no`, payout: yes === ONE ? ZERO : ONE },
];
const outcomes = (yes?: typeof ONE) =>
  paid(yes).map(({ outcomeId, payout }) => ({ outcomeId, label: outcomeId, ...(yes !== undefined && { payout }) }));
const open = (): MarketRecord => aMarketRecord({ marketId: id, outcomes: outcomes() });
const determined = (yes = ONE): MarketRecord =>
  aMarketRecord({
    marketId: id,
    status: 'resolved',
    resolution: 'outcome',
    winningOutcomeId: `${id}:${yes === ONE ? 'yes' : 'no'}`,
    outcomes: outcomes(yes),
    resolutionSteps: [{ state: 'resolved', payouts: paid(yes) }],
  });
const disputed = (): MarketRecord =>
  aMarketRecord({
    marketId: id,
    status: 'closed',
    outcomes: outcomes(),
    resolutionSteps: [{ state: 'resolved', payouts: paid() }, { state: 'disputed' }],
  });
const settled = (yes = ONE): MarketRecord => {
  const last: ResolutionStep = { state: 'settled', payouts: paid(yes), atMs: NOW, facts: { observedValue: '31.5' } };
  return { ...determined(yes), status: 'settled', resolutionSteps: [{ state: 'resolved', payouts: paid(yes) }, last] };
};

async function write(record: MarketRecord, venue = 'kalshi') {
  nowMs += 1_000;
  return test.db.transaction((tx) => writeMarkets(tx, venue, 'USD', [record], nowMs));
}
async function timeline(venue = 'kalshi') {
  const market = await findMarket(test.db, [venue], id);
  return market ? readTimeline(test.db, market.pk) : [];
}
const words = async () => (await timeline()).map(({ transition }) => transition).join(' ');
const state = async () => {
  const market = await findMarket(test.db, ['kalshi'], id);
  return market && [market.status, market.resolutionState, market.winningOutcomeId];
};

describe('writeMarkets', () => {
  it('appends a row per change of the result, with payouts and the time of the version', async () => {
    await write(open());
    await write(determined());
    await write(settled());
    await write(settled());
    const market = await findMarket(test.db, ['kalshi'], id);
    expect(await timeline()).toEqual([
      expect.objectContaining({
        venue: 'kalshi',
        marketId: id,
        transition: 'resolved',
        state: 'resolved',
        at: null,
        payouts: paid(),
        reason: null,
        source: 'route',
        round: null,
      }),
      expect.objectContaining({
        transition: 'settled',
        at: new Date(NOW),
        receivedAt: market?.updatedAt,
        observedValue: '31.5',
        source: 'route',
      }),
    ]);
    expect(await state()).toEqual(['settled', 'settled', `${id}:yes`]);
  });

  it('keeps the state at every moment', async () => {
    await write(open());
    await write(determined());
    await write(disputed());
    await write(settled());
    const market = await findMarket(test.db, ['kalshi'], id);
    const moments = (await timeline()).map(({ receivedAt }) => receivedAt);
    const states = await Promise.all(
      moments.map(async (at) => {
        // A moment is a text with microseconds in Postgres: the next millisecond is behind the version that began in this one.
        const found = await findMarketAt(test.db, ['kalshi'], id, (at.getTime() + 1) / 1_000);
        return found && found !== 'not-yet' && `${found.status} ${found.resolutionState}`;
      }),
    );
    expect(states.every((each) => each !== 'resolved disputed')).toBe(true);
    expect(market?.resolutionState).toBe('settled');
    expect(await words()).toBe('resolved disputed resolved settled');
  });

  it('has the time that a feed announced, when it belongs to this result', async () => {
    await write(open());
    const determinedMs = Date.now() - 5_000;
    await noteAnnounced(test.db, 'kalshi', new Map([[id, { resolved: determinedMs }]]));
    expect(await missingMarkets(test.db, 'kalshi', 1_000)).toContainEqual(expect.objectContaining({ marketId: id }));
    await write(determined());
    await write(disputed());
    await write(determined());
    expect((await timeline()).map(({ transition, at, source }) => [transition, at?.getTime(), source])).toEqual([
      ['resolved', determinedMs, 'feed'],
      ['disputed', undefined, 'route'],
      ['resolved', undefined, 'route'],
    ]);
    await noteAnnounced(test.db, 'kalshi', new Map([[id, { settled: Date.now() + 1_000 }]]));
    expect(await missingMarkets(test.db, 'kalshi', 1_000)).toContainEqual(expect.objectContaining({ marketId: id }));
  });

  it('gives a disputed market its last market price again', async () => {
    await write(open());
    const [yes, no] = await test.db.query<{ tokenId: bigint }>(TOKENS, [id]);
    const quote = (tokenId: bigint | undefined, price: string) => ({
      tokenId: tokenId ?? 0n,
      asOfMs: nowMs,
      price: decimal(price),
    });
    await test.db.transaction((tx) =>
      writePrices(tx, [quote(yes?.tokenId, '0.62'), quote(no?.tokenId, '0.38')], { observed: false }),
    );
    await write(determined());
    expect((await test.db.query<{ price: string }>(PRICES, [id])).map(({ price }) => price)).toEqual(['1', '0']);
    await write(disputed());
    expect((await test.db.query<{ price: string }>(PRICES, [id])).map(({ price }) => price)).toEqual(['0.62', '0.38']);
    expect(await state()).toEqual(['closed', 'disputed', null]);
  });

  it('states where a market stands that the former release stored with its result', async () => {
    await write({ ...determined(), resolutionSteps: undefined } as unknown as MarketRecord);
    expect(await state()).toEqual(['resolved', 'resolved', `${id}:yes`]);
    await write(settled());
    expect(await words()).toBe('resolved settled');
    // It was known before, so it is no news for alerts.
    const market = await findMarket(test.db, ['kalshi'], id);
    const changes = (await readMarketChanges(test.db, [market?.pk ?? 0n])).get(market?.pk ?? 0n);
    expect(changes?.map(({ reached }) => reached)).toEqual([[], []]);
  });

  it('keeps a disputed market disputed when a process of the former release writes its result', async () => {
    await write(open());
    await write(determined());
    await write(disputed());
    for (let round = 0; round < 2; round += 1) {
      await test.db.query(FORMER_MARKET, [id, 'resolved']);
      await test.db.query(FORMER_OUTCOMES, [id]);
      expect(await state()).toEqual(['closed', 'disputed', null]);
      expect((await test.db.query<{ payout: string | null }>(PAYOUTS, [id])).map(({ payout }) => payout)).toEqual([
        null,
        null,
      ]);
      await write(disputed());
    }
    expect(await words()).toBe('resolved disputed');
  });

  it('takes the settlement from a process of the former release, and adds its rows with the next own write', async () => {
    await write(open());
    await write(disputed());
    await test.db.query(FORMER_MARKET, [id, 'settled']);
    expect(await state()).toEqual(['settled', 'settled', `${id}:yes`]);
    await write(settled());
    expect(await words()).toBe('resolved disputed resolved settled');
  });

  it('adds the withdrawal of a result that a process of the former release wrote, though the market looks unchanged', async () => {
    await write(open());
    const [stored] = await test.db.query<{ hash: Buffer }>(HASH, [id]);
    await write(determined());
    await test.db.query(FORMER_REOPENED, [id, stored?.hash]);
    expect(await test.db.query(NOTED, [id])).toEqual([{ venue: 'kalshi' }]);
    await write(open());
    expect(await words()).toBe('resolved reopened');
    expect(await test.db.query(NOTED, [id])).toEqual([]);
    await write(open());
    expect(await words()).toBe('resolved reopened');
  });

  it('reports a result that a process of the former release wrote first', async () => {
    await write(open());
    await test.db.query(FORMER_MARKET, [id, 'resolved']);
    expect(await test.db.query(NOTED, [id])).toEqual([{ venue: 'kalshi' }]);
    await write(determined());
    expect(await words()).toBe('resolved');
    const market = await findMarket(test.db, ['kalshi'], id);
    const changes = (await readMarketChanges(test.db, [market?.pk ?? 0n])).get(market?.pk ?? 0n);
    expect(changes?.map(({ reached }) => reached)).toEqual([[], ['resolved']]);
    expect(await test.db.query(NOTED, [id])).toEqual([]);
  });
});

describe('the publisher', () => {
  it('numbers each row in the journal, and sends it once', async () => {
    await write(open());
    await write(determined());
    await write(disputed());
    await publishPending(test.db);
    const published = (await changesAfter(test.db)).filter(
      ({ kind, marketId }) => kind === 'resolution' && marketId === id,
    );
    const rows = await timeline();
    expect(rows.map(({ seq }) => Number(seq))).toEqual(published.map(({ seq }) => seq));
    expect(published.map(({ body }) => body['transition'])).toEqual(['resolved', 'disputed']);
    // A process of the former release sends nothing about facts, and fails at an unknown kind.
    expect(await test.db.query(STORED_KINDS, [id])).toEqual([{ kind: 'facts' }]);
    expect(published[0]?.body).toMatchObject({
      payouts: [
        { outcome_id: `${id}:yes`, payout: '1' },
        { outcome_id: `${id}:no`, payout: '0' },
      ],
    });
    expect(published[1]?.body).toMatchObject({ market_id: id, state: 'disputed', payouts: null });
  });

  it('publishes rows whose mark a publisher of the former release took', async () => {
    await write(open());
    await write(determined());
    await test.db.query(DROP_MARKS);
    await publishPending(test.db);
    expect((await timeline())[0]?.seq).toBeNull();
    await republishResolutions(test.db);
    await publishPending(test.db);
    expect((await timeline())[0]?.seq).toBeNull();
    await test.db.query(AGE);
    await republishResolutions(test.db);
    await republishResolutions(test.db);
    await publishPending(test.db);
    const published = (await changesAfter(test.db)).filter(
      ({ kind, marketId }) => kind === 'resolution' && marketId === id,
    );
    expect(published).toHaveLength(1);
    expect((await timeline())[0]?.seq).not.toBeNull();
  });
});

describe('the publisher beside one of the former release', () => {
  it('keeps the rows of a market in their order when the other one took an earlier mark', async () => {
    await write(open());
    await write(determined());
    await test.db.query(DROP_MARK, [id]);
    await write(disputed());
    await publishPending(test.db);
    await test.db.query(AGE);
    await republishResolutions(test.db);
    await publishPending(test.db);
    const published = (await changesAfter(test.db)).filter(
      ({ kind, marketId }) => kind === 'resolution' && marketId === id,
    );
    expect(published.map(({ body }) => body['transition'])).toEqual(['resolved', 'disputed']);
    expect((await timeline()).map(({ seq }) => Number(seq))).toEqual(published.map(({ seq }) => seq));
  });
});

describe('listResolutions', () => {
  it('pages through the rows of venues in the order of the journal', async () => {
    const venue = `list-${id}`;
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      id = `${id}x`;
      ids.push(id);
      await write(open(), venue);
      await write(n % 2 === 0 ? determined() : settled(), venue);
    }
    await publishPending(test.db);
    const all = await listResolutions(test.db, { venues: [venue], limit: 100 });
    expect(all.map(({ marketId }) => marketId)).toEqual([ids[0], ids[1], ids[1], ids[2], ids[3], ids[3], ids[4]]);
    const paged = [];
    let after: string | undefined;
    for (;;) {
      const page = await listResolutions(test.db, { venues: [venue], limit: 2, ...(after !== undefined && { after }) });
      paged.push(...page);
      after = String(page.at(-1)?.seq);
      if (page.length < 2) break;
    }
    expect(paged).toEqual(all);
    const ofSettled = await listResolutions(test.db, { venues: [venue, 'other'], states: ['settled'], limit: 100 });
    expect(ofSettled.map(({ marketId }) => marketId)).toEqual([ids[1], ids[3]]);
    expect(await listResolutions(test.db, { venues: [venue], category: 'none', limit: 100 })).toEqual([]);
    const since = (all.at(-1)?.receivedAt.getTime() ?? 0) / 1_000;
    expect(
      (await listResolutions(test.db, { venues: [venue], since, limit: 100 })).map(({ marketId }) => marketId),
    ).toEqual([ids[4]]);
  });
});
