import { describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../src/domain/markets/market.ts';
import { addDecimals, decimal, ONE } from '../../../src/domain/values/decimal.ts';
import { parseMarkets } from '../../../src/venues/manifold/parse-market.ts';
import { parseProbs } from '../../../src/venues/manifold/parse-price.ts';
import { parseBets } from '../../../src/venues/manifold/parse-trade.ts';
import { manifoldRecordings, RECORDED_AT_MS } from './recordings/manifold.ts';

const recordings = manifoldRecordings();

interface RawMarket {
  id: string;
  outcomeType: string;
  probability?: number;
  closeTime?: number;
}

/** Known facts of these recordings beyond their soundness. */
describe.skipIf(recordings === undefined)('the Manifold recordings', () => {
  const rowsOf = (name: RegExp, kind: string) => {
    const found = recordings?.files.filter((each) => name.test(each.file) && each.kind === kind) ?? [];
    expect(found.length).toBeGreaterThan(0);
    return found.flatMap((each) => each.records);
  };
  /** Two lists of 1,000 and 500, and one market by id. */
  const markets = () => [...rowsOf(/list_markets|get_markets/, 'markets'), ...rowsOf(/market_by_id/, 'markets')];
  const countsOf = (records: readonly MarketRecord[]) => {
    const counts: Record<string, number> = {};
    for (const { status, resolution } of records) {
      const key = resolution === 'void' ? 'void' : status;
      counts[key] = (counts[key] ?? 0) + 1;
    }
    return counts;
  };

  it('count 1,501 markets of all kinds: 640 open, 379 closed, 388 resolved, 94 void', () => {
    // Skipped kinds have the same states, so they count too when they are read as binary. 57 of them resolved to a number or to an answer,
    // which no binary market knows: these count as closed.
    const rows = markets().map((row) => ({ ...(row as object), outcomeType: 'BINARY', mechanism: 'cpmm-1' }));
    const once = [...parseMarkets(rows.slice(0, -1), RECORDED_AT_MS).records];
    const one = parseMarkets(rows.slice(-1), RECORDED_AT_MS).records;
    expect(countsOf([...once, ...one])).toEqual({ open: 640, closed: 379, settled: 388, void: 94 });
  });

  it('count 1,200 binary markets: 535 open, 231 closed, 366 resolved, 68 void; 301 of other kinds are skipped', () => {
    const rows = markets();
    const lists = parseMarkets(rows.slice(0, -1), RECORDED_AT_MS);
    const one = parseMarkets(rows.slice(-1), RECORDED_AT_MS);
    expect([...lists.rejected, ...one.rejected]).toEqual([]);
    expect(countsOf([...lists.records, ...one.records])).toEqual({ open: 535, closed: 231, settled: 366, void: 68 });
    const kinds: Record<string, number> = {};
    for (const { field, value } of lists.unknowns) kinds[`${field} ${value}`] = (kinds[`${field} ${value}`] ?? 0) + 1;
    expect(kinds).toEqual({
      'outcomeType FREE_RESPONSE': 244,
      'outcomeType NUMERIC': 45,
      'outcomeType PSEUDO_NUMERIC': 11,
      'mechanism MULTIPLE_CHOICE dpm-2': 1,
    });
    expect(lists.skipped.length).toBe(301);
  });

  it('show an open market without close_at when the venue sends the year 9999', () => {
    const never = markets().filter((row) => ((row as RawMarket).closeTime ?? 0) > Date.UTC(2200, 0, 1));
    expect(never.length).toBeGreaterThan(0);
    for (const record of parseMarkets(never, RECORDED_AT_MS).records) expect(record.closeAtMs).toBeUndefined();
    expect(parseMarkets(never, RECORDED_AT_MS).records.some((record) => record.status === 'open')).toBe(true);
  });

  it('show probabilities that add up to exactly 1 with their NO, 0.20000000000000004 among them', () => {
    const probs: Record<string, unknown> = {};
    for (const row of markets() as RawMarket[]) {
      if (row.outcomeType === 'BINARY' && row.probability !== undefined) probs[row.id] = { prob: row.probability };
    }
    const ids = Object.keys(probs);
    const { records, rejected } = parseProbs(probs, RECORDED_AT_MS);
    // The venue's own rounding: one market is at 1.000000000000004, which is not a probability.
    expect(rejected.map(({ reason, detail }) => `${reason} ${detail}`)).toEqual([
      'price_out_of_range prob: 1.000000000000004',
    ]);
    const rejectedIds = new Set(rejected.map((each) => each.recordId));
    expect(records.length).toBe(2 * (ids.length - 1));
    const prices = new Map(records.map((record) => [record.outcomeId, record.price]));
    for (const id of ids.filter((each) => !rejectedIds.has(each))) {
      const [yes, no] = [prices.get(`${id}:YES`), prices.get(`${id}:NO`)];
      expect(addDecimals(yes ?? decimal(9), no ?? decimal(9))).toBe(ONE);
    }
    expect(records.filter((record) => record.price === '0.20000000000000004').length).toBeGreaterThan(0);
    expect(records.filter((record) => record.price === '0.79999999999999996').length).toBeGreaterThan(0);
  });

  it('show redemptions, antes, unfilled orders and numbered outcomes as skips', () => {
    const bets = ['none', 'market', 'username'].flatMap((name) => rowsOf(new RegExp(`list_bet__${name}`), 'trades'));
    expect(bets.length).toBe(135);
    const counts: Record<string, number> = {};
    const batch = parseBets(bets, RECORDED_AT_MS);
    for (const reason of batch.skipped) counts[reason] = (counts[reason] ?? 0) + 1;
    expect(counts).toEqual({ redemption: 8, ante: 4, outcome: 23, nothing_taken: 5 });
    expect(batch.rejected).toEqual([]);
    expect(batch.records.length).toBe(95);
  });

  it('show that an order took nothing when only later bets filled it', () => {
    const maker = rowsOf(/list_bet__username/, 'trades').find((row) => {
      const { limitProb, amount } = row as { limitProb?: number; amount: number };
      return limitProb !== undefined && amount > 0;
    });
    expect(parseBets([maker], RECORDED_AT_MS).skipped).toEqual(['nothing_taken']);
  });

  it('show the own fills of each bet, even with stamps of whole seconds and limits on all bets', () => {
    const rows = recordings?.files.filter(({ kind }) => kind === 'trades').flatMap(({ records }) => records) ?? [];
    interface Filled {
      id: string;
      outcome: string;
      createdTime: number;
      shares: number;
      limitProb?: number;
      fills: { matchedBetId: string | null; timestamp: number }[];
    }
    const bets = new Map(
      (rows as Partial<Filled>[])
        .filter((bet): bet is Filled => (bet.fills?.length ?? 0) > 0)
        .map((bet) => [bet.id, bet]),
    );
    const filledLater = [...bets.values()].filter((bet) => bet.fills.every((fill) => fill.timestamp > bet.createdTime));
    expect([bets.size, filledLater.length]).toEqual([51, 1]);
    for (const bet of bets.values()) {
      const cut = { ...bet, createdTime: Math.floor(bet.createdTime / 1000) * 1000 };
      const certain = bet.outcome === 'YES' ? 0.99 : 0.01;
      for (const each of [cut, { ...cut, limitProb: bet.limitProb ?? certain }]) {
        const isTaken = !filledLater.includes(bet);
        expect(parseBets([each], RECORDED_AT_MS).records.map(({ size }) => Number(size))).toEqual(
          isTaken ? [Math.abs(bet.shares)] : [],
        );
      }
    }
  });

  it('show trades that add up to the volume of a market', () => {
    const [market] = rowsOf(/market_by_id/, 'markets') as { volume: number }[];
    const { records, rejected, skipped } = parseBets(rowsOf(/market_by_id/, 'trades'), RECORDED_AT_MS);
    expect([rejected, skipped]).toEqual([[], []]);
    const volume = records.reduce((sum, { price, size }) => sum + Number(price) * Number(size), 0);
    expect(volume).toBeCloseTo(market?.volume ?? 0, 6);
  });

  it('show each trade between the probabilities before and after it, within fees and rounding', () => {
    const bets = ['none', 'market', 'username'].flatMap((name) => rowsOf(new RegExp(`list_bet__${name}`), 'trades'));
    const byId = new Map((bets as { id: string; probBefore: number; probAfter: number }[]).map((bet) => [bet.id, bet]));
    for (const { tradeId, outcomeId, price } of parseBets(bets, RECORDED_AT_MS).records) {
      const { probBefore = 0, probAfter = 0 } = byId.get(tradeId) ?? {};
      const yes = outcomeId.endsWith(':NO') ? 1 - Number(price) : Number(price);
      expect(yes).toBeGreaterThan(Math.min(probBefore, probAfter) - 0.06);
      expect(yes).toBeLessThan(Math.max(probBefore, probAfter) + 0.06);
    }
  });
});
