import { beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { ensureTokens } from '../../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { runBacktestJob } from '../../../../workers/jobs/run-backtest.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { storedSnapshots } from '../../../factories/stored-series.ts';
import { jobContext, testConfig } from '../../workers/worker-harness.ts';
import { useTestApi } from '../api-harness.ts';
import { signIn } from './console-client.ts';

const OBSERVE = sql(
  'test_trial_rows',
  `INSERT INTO observation (token_id, received_at, venue_at, price)
   SELECT $1, now() - interval '40 minutes' + i * interval '1 millisecond', now(), round(i % 10 / 10.0, 1) FROM generate_series(1, $2::int) i`,
);
const SIGHTED = sql('test_trial_sighted', `UPDATE market SET updated_at = now() - interval '1 hour' WHERE id = $1`);

const api = useTestApi({ console: {}, now: Date.now });
let market: TestMarket;
let tokenMint = '';
/** More than an answer at once evaluates. */
let large = '';

beforeAll(async () => {
  await new Partitions(api.db).ensureAroundNow('observation');
  await new Partitions(api.db).ensureAroundNow('price_history');
  market = await aStoredMarket(api.db, { title: 'Will the owl hoot?' });
  await api.db.query(SIGHTED, [market.pk]);
  const [yes] = market.outcomes;
  if (!yes) throw new TypeError('the market has outcomes');
  tokenMint = yes.outcomeId;
  await api.db.query(OBSERVE, [yes.tokenId, 100]);
  const now = Math.floor(Date.now() / 60_000) * 60;
  await storedSnapshots(api.db, yes.tokenId, [
    { ts: now - 3_000, price: '0.2' },
    { ts: now - 1_200, price: '0.8' },
  ]);
  large = newId('req');
  await api.db.query(OBSERVE, [(await ensureTokens(api.db, [large], 'USD')).get(large), 1_000_001]);
});

/** The visible text of the section with the firings. */
const trialOf = (page: string) =>
  /<section class="trial".*?<\/section>/s
    .exec(page)?.[0]
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ');

describe('the form of an alert shows firings on the past', () => {
  const tried = (fields: Record<string, string>) => ({ condition: 'above', over: '1h', ...fields });

  it('of one outcome in words, on a chart and in a table, and saves nothing', async () => {
    const browser = await signIn(api);
    const answer = await browser.post('/alerts/new', tried({ tokenMint, price: '0.9' }));
    const text = trialOf(answer.text);
    expect([answer.status, text]).toEqual([200, expect.any(String)]);
    expect(text).toMatch(/It would have fired once from .* UTC, on 100 observations/);
    expect(text).toContain('No gap is known in this time.');
    expect(answer.text.match(/class="mark"/g)).toHaveLength(1);
    expect(answer.text).toMatch(/data-fired="\d+" data-at="0\.9"/);
    expect(answer.text).toContain('name="price" type="text" autocomplete="off" value="0.9"');
    expect((await browser.account('GET', '/v1/alerts')).body.data).toEqual([]);
  });

  it.each([
    ['crosses_above', { price: '0.5', repeat: 'true', cooldownSeconds: '1' }, /would have fired once/],
    ['change', { change: '0.05', unit: 'absolute', windowSeconds: '1 h' }, /It would( not)? have fired/],
    ['spread', { price: '0.02', spreadDirection: 'at_most' }, /would not have fired/],
    ['trade', { notional: '500' }, /would not have fired.*No firing\. Try another threshold or a longer time/],
    ['volume', { windowSeconds: '1h', notional: '5' }, /would not have fired/],
    ['status', {}, /would not have fired .* changes of markets/],
  ])('for %s', async (condition, fields, words) => {
    const browser = await signIn(api);
    const { status, text } = await browser.post('/alerts/new', tried({ tokenMint, ...fields, condition }));
    expect([status, trialOf(text)]).toEqual([200, expect.stringMatching(words)]);
    expect(text).toContain('class="trial-chart"');
  });

  it('of the outcomes of one market with a line of each, and of several markets without a chart', async () => {
    const browser = await signIn(api);
    const of = (scope: Record<string, string>) =>
      browser.post('/alerts/new', tried({ subject: 'scope', price: '0.9', ...scope }));
    const one = await of({ 'scope.venue': 'polymarket', 'scope.market_id': market.marketId });
    expect(one.text.match(/class="line series-\d"/g)).toHaveLength(1);
    expect(trialOf(one.text)).toMatch(/Yes No would have fired .* Will the owl hoot\? · Yes 90\.0 %/);
    const several = await of({ 'scope.q': 'owl' });
    expect(trialOf(several.text)).toMatch(/would have fired once .* Will the owl hoot\?/);
    expect(several.text).not.toContain('trial-chart');
  });

  it('of a large range with a button that reads the result of the job', async () => {
    const browser = await signIn(api);
    const fields = tried({ tokenMint: large, price: '0.9' });
    const started = await browser.post('/alerts/new', fields);
    expect(trialOf(started.text)).toMatch(/a job evaluates it: 0 % is done.* Show the result/);
    const job = /name="job" value="([^"]+)"/.exec(started.text)?.[1] ?? '';
    const other = await browser.post('/alerts/new', { ...fields, tokenMint, job });
    expect(trialOf(other.text)).toContain('on 100 observations');
    const wake = api.wakes.findLast((one) => one.job === 'run-backtest');
    await runBacktestJob.run(wake?.data, jobContext({ db: api.db, config: testConfig(api.databaseUrl) }));
    const done = await browser.post('/alerts/new', { ...fields, job });
    expect(trialOf(done.text)).toMatch(/It would have fired once .* on 1,000,001 observations/);
  });

  it('or the reasons of the API with the labels of the form', async () => {
    const browser = await signIn(api);
    const rejected = async (fields: Record<string, string>) => {
      const { status, text } = await browser.post('/alerts/new', tried(fields));
      const problem = /<div class="problem".*?<\/div>/s.exec(text)?.[0].replaceAll(/<[^>]*>/g, ' ');
      return [status, problem?.replaceAll(/\s+/g, ' ').trim()];
    };
    const lead = 'The alert was not tried, and nothing was saved.';
    expect(await rejected({ tokenMint, price: 'much' })).toEqual([400, `${lead} Price: must be a number`]);
    expect(await rejected({ tokenMint, price: '1.2' })).toEqual([400, expect.stringMatching(/Price: .* at most 1/)]);
    expect(await rejected({ price: '0.5' })).toEqual([400, expect.stringMatching(/Outcome: /)]);
    expect(await rejected({ tokenMint, price: '0.5', over: '9y' })).toEqual([
      400,
      expect.stringMatching(/Past to try it on: /),
    ]);
    for (let open = 0; open < 3; open++) await rejected({ tokenMint: large, price: '0.9' });
    expect(await rejected({ tokenMint: large, price: '0.9' })).toEqual([
      403,
      `${lead} 3 backtests of this account have not ended. Wait until one of them has, or choose a shorter time.`,
    ]);
  });

  it('only with the scope of alerts, and of a market without the scope of markets without a chart', async () => {
    const fields = tried({ tokenMint, price: '0.9' });
    expect((await (await signIn(api, ['markets:read'])).post('/alerts/new', fields)).status).toBe(403);
    const { status, text } = await (await signIn(api, ['alerts'])).post('/alerts/new', fields);
    expect([status, trialOf(text)]).toEqual([200, expect.stringContaining('would have fired once')]);
    expect(text).not.toContain('trial-chart');
  });
});
