import { beforeAll, describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { createAlert, type NewAlert } from '../../../../src/store/alerts/alerts.ts';
import { findByProbes } from '../../../../src/store/alerts/probes.ts';
import { WindowMemory } from '../../../../src/store/alerts/windows.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { anAccount } from '../../../factories/alerts.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const OBSERVE = sql(
  'test_observe_prices',
  `INSERT INTO observation (token_id, received_at, venue_at, price, size)
   SELECT t.id, to_timestamp(ms / 1000.0), now(), price, size
   FROM unnest($2::bigint[], $3::numeric[], $4::numeric[]) WITH ORDINALITY AS o (ms, price, size, place) JOIN token t ON t.mint = $1
   ORDER BY place`,
);
const TOKEN = sql('test_token_of_mint', 'SELECT id FROM token WHERE mint = $1');

const NOW = Date.now();
const HOUR_MS = 3_600_000;
/** Thresholds from 0.04 to 0.96: more rules of one probe than a step reads. */
const THRESHOLDS = Array.from({ length: 24 }, (_, index) => (index + 1) / 25);

const test = useTestDatabase();
let accountId: bigint;
let mint: string;
let tokenId: bigint;
let marketId: string;
beforeAll(async () => {
  for (const table of ['observation', 'price_history'] as const)
    await new Partitions(test.db).ensure(table, [NOW, NOW - 6 * HOUR_MS]);
  accountId = await anAccount(test.db);
  const market = await aStoredMarket(test.db, {});
  marketId = market.marketId;
  mint = market.outcomes[0]?.outcomeId ?? '';
  const [row] = await test.db.query<{ id: bigint }>(TOKEN, [mint]);
  tokenId = row?.id ?? 0n;
});

const observe = (list: readonly (readonly [ms: number, price: number, size?: number])[]) =>
  test.db.query(OBSERVE, [
    mint,
    list.map(([ms]) => ms),
    list.map(([, price]) => price),
    list.map(([, , size]) => size ?? null),
  ]);

/** The kinds of rules, each with the thresholds that the observations below may meet. */
const KINDS: readonly [name: string, rule: Omit<NewAlert, 'target'>, meets: (threshold: number) => boolean][] = [
  ['above', { condition: 'above', cooldownSeconds: 1 }, (target) => target <= 0.6],
  ['below', { condition: 'below', cooldownSeconds: 1 }, (target) => target >= 0.5],
  ['crosses_above', { condition: 'crosses_above' }, (target) => target >= 0.4 && target <= 0.6],
  ['crosses_below', { condition: 'crosses_below' }, (target) => target >= 0.4 && target <= 0.6],
  ['trade', { condition: 'trade' }, (target) => target <= 0.3],
  ['a volume of a minute', { condition: 'volume', windowSeconds: 60 }, (target) => target <= 0.3],
  ['a volume of a day', { condition: 'volume', windowSeconds: 86_400 }, (target) => target <= 0.38],
  ['a change in a minute', { condition: 'change', unit: 'absolute', windowSeconds: 60 }, (change) => change <= 0.2],
  ['a change in a day', { condition: 'change', unit: 'absolute', windowSeconds: 86_400 }, (change) => change <= 0.5],
];

describe('findByProbes', () => {
  it('finds exactly the rules whose threshold the new observations may meet', async () => {
    await observe([
      [NOW - 5 * HOUR_MS, 0.9],
      [NOW - 4 * HOUR_MS, 0.8, 0.1],
      [NOW - HOUR_MS, 0.4],
    ]);
    const expected = new Map<string, number[]>();
    const found = new Map<bigint, [name: string, threshold: number]>();
    for (const place of ['token', 'market']) {
      const subject = place === 'token' ? { tokenMint: mint } : { scope: { market_id: marketId } };
      for (const [kind, rule, meets] of KINDS) {
        const name = `${kind} on the ${place}`;
        expected.set(name, THRESHOLDS.filter(meets));
        await test.db.transaction(async (tx) => {
          for (const threshold of THRESHOLDS) {
            const made = await createAlert(tx, accountId, { ...rule, ...subject, target: decimal(String(threshold)) });
            if (made.outcome !== 'created') throw new Error(made.outcome);
            found.set(made.alert.pk, [name, threshold]);
          }
        });
      }
    }
    await observe([
      [NOW, 0.5],
      [NOW, 0.6, 0.5],
    ]);
    const candidates = await findByProbes(test.db, new Map([[tokenId, NOW]]), new WindowMemory());
    const byName = new Map([...expected.keys()].map((name): [string, number[]] => [name, []]));
    for (const { alertPk, subject } of candidates) {
      expect(subject).toBe(tokenId);
      const [name, threshold] = found.get(alertPk) ?? ['', 0];
      byName.get(name)?.push(threshold);
    }
    expect([...byName].map(([name, list]) => [name, list.sort((a, b) => a - b)])).toEqual([...expected]);
    expect(await findByProbes(test.db, new Map([[tokenId + 1n, NOW]]), new WindowMemory())).toEqual([]);
  });

  it('finds no rule on volume for a new quote', async () => {
    await observe([[NOW + 1, 0.6]]);
    const rules = await findByProbes(test.db, new Map([[tokenId, NOW + 1]]), new WindowMemory());
    expect(rules.length).toBeGreaterThan(0);
    const OF_VOLUME = sql(
      'test_rules_of_volume',
      `SELECT count(*)::int AS rules FROM alert WHERE pk = ANY ($1::bigint[]) AND condition IN ('volume', 'trade')`,
    );
    expect(await test.db.query(OF_VOLUME, [rules.map(({ alertPk }) => alertPk)])).toEqual([{ rules: 0 }]);
  });
});
