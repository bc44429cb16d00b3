import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { rulesHash } from '../../../support/rules-hash.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

beforeAll(() => new Partitions(api.db).ensureAroundNow('price_history'));

/** When the first rules were stored, epoch seconds. */
const T0 = 1_750_000_000;

const MOVE_SINCE = sql(
  'test_move_since',
  `UPDATE market SET updated_at = to_timestamp($2::float8) WHERE venue_market_id = $1`,
);

async function write(over: Partial<MarketRecord> & { marketId: string }) {
  await api.db.transaction((tx) => writeMarkets(tx, 'polymarket', 'USD', [aMarketRecord(over)], Date.now()));
}

/** A market whose text changed once, and whose source changed then. */
async function aMarketWithRules(): Promise<string> {
  const marketId = `0x${randomBytes(8).toString('hex')}`;
  await write({ marketId, resolutionCriteria: 'Rain in March.', settlementSource: 'https://a.example' });
  await api.db.query(MOVE_SINCE, [marketId, T0]);
  await write({ marketId, resolutionCriteria: 'Rain in May.', settlementSource: 'https://a.example' });
  await write({ marketId, resolutionCriteria: 'Rain in May.', settlementSource: 'https://b.example' });
  return marketId;
}

const read = (marketId: string, query = '', venue = 'all') =>
  client.market(`/v1/${venue}/markets/${marketId}/rules${query}`);

describe('GET /v1/{venue}/markets/{id}/rules', () => {
  it('states the present rules and all versions when asked without parameters', async () => {
    const marketId = await aMarketWithRules();
    const { status, body } = await read(marketId);
    const hashOf = (text: string, settlementSource: string) => rulesHash({ text, settlementSource });
    const { since, read_at } = body.data as { since: number; read_at: number };
    expect([status, body.data]).toEqual([
      200,
      {
        market_id: marketId,
        version: 3,
        text: 'Rain in May.',
        settlement_source: 'https://b.example',
        hash: hashOf('Rain in May.', 'https://b.example'),
        since,
        read_at,
        versions: [
          { version: 1, hash: hashOf('Rain in March.', 'https://a.example'), since: T0 },
          { version: 2, hash: hashOf('Rain in May.', 'https://a.example'), since: expect.any(Number) },
          { version: 3, hash: hashOf('Rain in May.', 'https://b.example'), since },
        ],
      },
    ]);
    expect(since).toBeGreaterThan(T0);
    expect(read_at).toBeGreaterThanOrEqual(since);
    expect((await read(marketId, '', 'polymarket')).body.data).toEqual(body.data);
  });

  it('states the version of a moment when as_of is given', async () => {
    const marketId = await aMarketWithRules();
    const { body } = await read(marketId, `?as_of=${T0}`);
    expect(body.data).toMatchObject({ version: 1, text: 'Rain in March.', since: T0, versions: [{ version: 1 }] });
    expect(body.data).not.toHaveProperty('read_at');
  });

  it('has the difference in words when from and to are given', async () => {
    const marketId = await aMarketWithRules();
    const words = await read(marketId, '?from=1&to=2');
    expect(words.body.data).toMatchObject({
      version: 3,
      diff: [
        { op: 'equal', text: 'Rain in ' },
        { op: 'delete', text: 'March' },
        { op: 'insert', text: 'May' },
        { op: 'equal', text: '.' },
      ],
    });
    expect(words.body.data).not.toHaveProperty('settlement_source_diff');
    const source = await read(marketId, '?from=3&to=2');
    expect(source.body.data).toMatchObject({
      diff: [{ op: 'equal', text: 'Rain in May.' }],
      settlement_source_diff: expect.arrayContaining([
        { op: 'delete', text: 'b' },
        { op: 'insert', text: 'a' },
      ]),
    });
  });

  it('is no_data_yet when no rules are known, now or at the moment, and market_not_found when the market is unknown', async () => {
    const marketId = await aMarketWithRules();
    const bare = `0x${randomBytes(8).toString('hex')}`;
    await write({ marketId: bare });
    const answers = [await read(bare), await read(marketId, `?as_of=${T0 - 1}`), await read('nope')];
    expect(answers.map(({ status, body }) => [status, body.error.code])).toEqual([
      [404, 'no_data_yet'],
      [404, 'no_data_yet'],
      [404, 'market_not_found'],
    ]);
    expect((await read(marketId, '', 'nowhere')).body.error.code).toBe('venue_not_found');
  });

  it.each([
    ['from=1', 'to'],
    ['to=1', 'from'],
    ['from=1&to=4', 'to'],
    ['from=9&to=1', 'from'],
    ['from=0&to=1', 'from'],
    ['from=x&to=1', 'from'],
    ['from=1&to=1000001', 'to'],
    [`from=1&to=2&as_of=${T0}`, 'to'],
    ['as_of=9999999999', 'as_of'],
    ['as_of=x', 'as_of'],
    ['version=1', 'version'],
  ])('is invalid_request when the query is %s', async (query, path) => {
    const { status, body } = await read(await aMarketWithRules(), `?${query}`);
    expect([status, body.error.code, body.error.details?.[0]?.path]).toEqual([400, 'invalid_request', path]);
  });
});
