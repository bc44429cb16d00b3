import { beforeAll, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { DAY_MS } from '../../../src/domain/values/durations.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { createAlert, type NewAlert } from '../../../src/store/alerts/alerts.ts';
import { backtest } from '../../../src/store/alerts/backtest/backtest.ts';
import { ANSWER_LIMITS } from '../../../src/store/alerts/backtest/request.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { useAlertDesk } from './alert-desk.ts';

const OF_TOKEN = 'WHERE token_id = (SELECT id FROM token WHERE mint = $1)';
const FORGET_OBSERVATIONS = sql('test_forget_observations', `DELETE FROM observation ${OF_TOKEN}`);
/** Retention drops observations first. The latest price stays in any case. */
const FORGET = {
  observations: [
    FORGET_OBSERVATIONS,
    sql(
      'test_age_quotes',
      `UPDATE price_history SET received_at = received_at - interval '2 days' ${OF_TOKEN} AND received_at > now() - interval '1 day'`,
    ),
  ],
  'observations and quotes': [FORGET_OBSERVATIONS, sql('test_forget_quotes', `DELETE FROM price_history ${OF_TOKEN}`)],
} as const;
const CREATED = sql(
  'test_created_ms',
  'SELECT floor(extract(epoch FROM created_at) * 1000)::float8 AS ms FROM alert WHERE pk = $1',
);
const FIRINGS = sql(
  'test_prices_of_firings',
  `SELECT f.price, f.from_price FROM alert_firing f WHERE f.alert_pk = $1
   UNION ALL SELECT a.triggered_price, NULL FROM alert a WHERE a.pk = $1 AND a.probe IS NULL AND a.status = 'triggered'`,
);

const desk = useAlertDesk();
beforeAll(() => new Partitions(desk.db).ensure('price_history', [Date.now() - 2 * DAY_MS]));

const target = decimal('0.5');
const moves = { target: decimal('40'), unit: 'percent', windowSeconds: 86_400 } as const;
const REPEATED = { cooldownSeconds: 3_600 };

it.each<[keyof typeof FORGET, string, Omit<NewAlert, 'tokenMint'>, string, string[]]>([
  ['observations', 'crosses_above', { condition: 'crosses_above', target }, '0.4', ['0.6 from 0.4']],
  ['observations', 'crosses_below', { condition: 'crosses_below', target }, '0.9', []],
  ['observations', 'change', { condition: 'change', ...moves }, '0.4', ['0.6 from 0.4']],
  ['observations', 'a repeating above', { condition: 'above', target, ...REPEATED }, '0.7', ['0.7']],
  ['observations and quotes', 'above', { condition: 'above', target }, '0.7', ['0.7']],
  ['observations and quotes', 'a repeating above', { condition: 'above', target, ...REPEATED }, '0.7', ['0.7']],
  ['observations and quotes', 'a repeating below', { condition: 'below', target, ...REPEATED }, '0.7', []],
])(
  'after retention dropped the %s of a token, %s and its backtest fire alike',
  async (what, _, request, before, fired) => {
    const mint = newId('req');
    await desk.see(mint, before);
    await desk.evaluate();
    for (const statement of FORGET[what]) await desk.db.query(statement, [mint]);
    const made = await desk.db.transaction((tx) => createAlert(tx, desk.accountId, { ...request, tokenMint: mint }));
    if (made.outcome !== 'created') throw new Error(made.outcome);
    const { pk } = made.alert;
    await desk.evaluate();
    if (what === 'observations') await desk.see(mint, '0.6');
    await desk.evaluate();
    const live = await desk.db.query<{ price: string; fromPrice: string | null }>(FIRINGS, [pk]);
    expect(live.map(({ price, fromPrice }) => textOf(price, fromPrice))).toEqual(fired);
    const { target: threshold, ...rest } = request;
    const [created] = await desk.db.query<{ ms: number }>(CREATED, [pk]);
    const result = await backtest(
      desk.db,
      {
        ...rest,
        threshold,
        tokenMint: mint,
        scopeKey: null,
        startMs: created?.ms ?? 0,
        endMs: Date.now() + 1,
      },
      ANSWER_LIMITS,
    );
    expect(result?.firings.map((one) => textOf(one.price, one.fromPrice))).toEqual(fired);
  },
);

function textOf(price: string | undefined, fromPrice?: string | null): string {
  return fromPrice === null || fromPrice === undefined ? String(price) : `${price} from ${fromPrice}`;
}
