import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import { findRules } from '../../../../src/store/catalog/market-rules.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

/** What the former release stores of a changed text: a version without the source, and the row. */
const FORMER_VERSION = sql(
  'test_former_version',
  `INSERT INTO market_version (market_id, known_until, known_from, facts)
   SELECT id, now(), updated_at, jsonb_build_object('title', title, 'status', status, 'resolution_criteria', resolution_criteria)
   FROM market WHERE venue_market_id = $1`,
);
const FORMER_UPDATE = sql(
  'test_former_update',
  `UPDATE market SET resolution_criteria = $2, content_hash = '\\x01', updated_at = now() WHERE venue_market_id = $1`,
);
const MOVE_SINCE = sql(
  'test_move_since',
  `UPDATE market SET updated_at = to_timestamp($2::float8) WHERE venue_market_id = $1`,
);

const NOW = Date.UTC(2026, 2, 1);

const test = useTestDatabase();
let id = '';
let made = 0;
beforeAll(() => new Partitions(test.db).ensureAroundNow('price_history'));
beforeEach(() => {
  made += 1;
  id = `m${made}`;
});

const write = (over: Partial<MarketRecord>, { nowMs = NOW, sweepStartedAtMs = undefined as number | undefined } = {}) =>
  test.db.transaction((tx) =>
    writeMarkets(tx, 'v', 'USD', [aMarketRecord({ marketId: id, ...over })], nowMs, sweepStartedAtMs),
  );
const read = (asOf?: number) => findRules(test.db, ['v'], id, asOf);
const texts = async (asOf?: number) =>
  (await read(asOf))?.versions.map(({ version, text, settlementSource }) => [version, text, settlementSource]);

describe('findRules', () => {
  it('has a version per change of the words when other fields and white space change too', async () => {
    await write({ resolutionCriteria: 'By the office.', settlementSource: 'Office (https://example.com)' });
    await write({ resolutionCriteria: 'By the office.', settlementSource: 'Office (https://example.com)', title: 'b' });
    await write({ resolutionCriteria: 'By  the\noffice. ', settlementSource: 'Office (https://example.com)' });
    await write({ resolutionCriteria: 'By the agency.', settlementSource: 'Office (https://example.com)' });
    await write({ resolutionCriteria: 'By the agency.', settlementSource: 'Agency' });
    expect(await texts()).toEqual([
      [1, 'By  the\noffice. ', 'Office (https://example.com)'],
      [2, 'By the agency.', 'Office (https://example.com)'],
      [3, 'By the agency.', 'Agency'],
    ]);
  });

  it('keeps text and source when a summary omits them', async () => {
    await write({ isSummary: true, title: 'a' });
    expect(await texts()).toEqual([]);
    await write({ resolutionCriteria: 'By the office.', settlementSource: 'Office' });
    await write({ isSummary: true, title: 'b' });
    expect(await texts()).toEqual([[1, 'By the office.', 'Office']]);
  });

  it('has the versions of a moment when asked as of it', async () => {
    await write({ resolutionCriteria: 'one' });
    await test.db.query(MOVE_SINCE, [id, 1_700_000_000]);
    await write({ resolutionCriteria: 'two' });
    expect(await texts(1_699_999_999)).toEqual([]);
    expect(await texts(1_700_000_000)).toEqual([[1, 'one', null]]);
    expect(await texts()).toEqual([
      [1, 'one', null],
      [2, 'two', null],
    ]);
  });

  it('loses no version when a process of the former release changes the text', async () => {
    await write({ resolutionCriteria: 'one', settlementSource: 'Office' });
    await write({ resolutionCriteria: 'one', settlementSource: 'Office', title: 'b' });
    await test.db.query(FORMER_VERSION, [id]);
    await test.db.query(FORMER_UPDATE, [id, 'two']);
    await write({ resolutionCriteria: 'three', settlementSource: 'Office' });
    expect(await texts()).toEqual([
      [1, 'one', 'Office'],
      [2, 'two', 'Office'],
      [3, 'three', 'Office'],
    ]);
  });

  it('adds no version when the source is read for the first time after an upgrade', async () => {
    await write({ resolutionCriteria: 'one' });
    await write({ resolutionCriteria: 'one', settlementSource: 'Office' });
    expect(await texts()).toEqual([[1, 'one', 'Office']]);
  });

  it('states the last sweep that listed all texts when later sweeps list summaries', async () => {
    const [first, second, third] = [NOW, NOW + 60_000, NOW + 120_000];
    const facts = { resolutionCriteria: 'one' };
    await write(facts, { nowMs: first, sweepStartedAtMs: first });
    await test.db.query(MOVE_SINCE, [id, first / 1_000 - 60]);
    await write(facts, { nowMs: second, sweepStartedAtMs: second });
    await write({ isSummary: true }, { nowMs: third, sweepStartedAtMs: third });
    expect((await read())?.readMs).toBe(second);
  });

  it('states the change of the rules when no sweep has listed them since', async () => {
    await write({ resolutionCriteria: 'one' }, { nowMs: NOW });
    const read0 = await read();
    expect(read0?.readMs).toBe(Math.max(NOW, read0?.versions[0]?.sinceMs ?? 0));
  });

  it('is null when the market is unknown', async () => {
    expect(await read()).toBeNull();
  });
});
