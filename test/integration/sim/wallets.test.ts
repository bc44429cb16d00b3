import { beforeAll, describe, expect, it } from 'vitest';
import { REGULAR, TIGHT_MAKER } from '../../../sim/traders/wallets.ts';
import { walletOf, wholeConditionId } from '../../../sim/world/identity.ts';
import { useHttpExchange } from './http-exchange.ts';

interface Activity {
  timestamp: number;
  type: string;
  size: number;
  usdc_size: number;
  transaction_hash: string;
  token_id: string;
  condition_id: string;
  side: string;
  outcome_index: number;
}
interface Position {
  token_id: string;
  condition_id: string;
  current_size: number;
}
interface V2<Row> {
  data: Row[];
  pagination: { has_more: boolean; next_cursor: string | null };
}

const { http, exchange } = useHttpExchange({ markets: 30, rollingSeconds: 120, speed: 2 }, 400);
let maker = '';
let regular = '';
beforeAll(() => {
  maker = walletOf(exchange.seed, TIGHT_MAKER).address;
  regular = walletOf(exchange.seed, REGULAR).address;
});

async function activityOf(user: string): Promise<Activity[]> {
  const filters = `user=${user}&start=1&sort_direction=ASC&exclude_deposits_withdrawals=false`;
  const rows: Activity[] = [];
  let cursor: string | null = null;
  do {
    const place: string = cursor === null ? 'limit=7' : `cursor=${cursor}`;
    const { data, pagination }: V2<Activity> = await http.get(http.data(`/v2/activity?${filters}&${place}`));
    rows.push(...data);
    cursor = pagination.next_cursor;
  } while (cursor !== null);
  return rows;
}

describe('the wallets of the Data API', () => {
  it('have the actions of the tape, with splits, redemptions and deposits around them', async () => {
    const rows = await activityOf(regular);
    const sums = (of: (row: Activity) => string, only: Activity[]) => {
      const found = new Map<string, number>();
      for (const row of only) found.set(of(row), (found.get(of(row)) ?? 0) + Math.round(row.size * 1e6));
      return found;
    };
    const traded = sums(
      ({ transaction_hash, token_id, side }) => `${transaction_hash} ${token_id} ${side}`,
      rows.filter(({ type }) => type === 'TRADE'),
    );
    const printed = new Map<string, number>();
    for (const { transactionHash, maker: of, tokenId, side, proxyWallet, size } of exchange.ledger().trades) {
      const views = [
        { wallet: proxyWallet, tokenId, side },
        { wallet: of.proxyWallet, tokenId: of.tokenId, side: of.side },
      ];
      for (const view of views.filter(({ wallet }) => wallet === regular)) {
        const key = `${transactionHash} ${view.tokenId} ${view.side}`;
        printed.set(key, (printed.get(key) ?? 0) + Math.round(Number(size) * 1e6));
      }
    }
    expect(traded).toEqual(printed);
    expect(new Set(rows.map(({ type }) => type))).toEqual(new Set(['TRADE', 'SPLIT', 'REDEEM', 'DEPOSIT']));
    const texts = rows.map((row) => JSON.stringify(row));
    expect(new Set(texts).size).toBeLessThan(texts.length);
    expect(new Set(rows.map(({ transaction_hash }) => transaction_hash)).size).toBeLessThan(rows.length);
    const seconds = rows.map(({ timestamp }) => timestamp);
    expect(seconds).toEqual(seconds.toSorted((a, b) => a - b));
    const others = rows.filter(({ type }) => type !== 'TRADE');
    expect(others.every((row) => row.token_id === '' && row.side === '' && row.outcome_index === 999)).toBe(true);
  });

  it('hold the sum of their actions, without holdings in redeemed markets', async () => {
    const held = new Map<string, number>();
    const { markets } = exchange.state();
    const tokens = new Map(markets.map(({ conditionId, outcomes }) => [wholeConditionId(conditionId), outcomes]));
    const redeemed = new Set<string>();
    for (const { type, token_id, condition_id, side, size } of await activityOf(regular)) {
      const units = Math.round(size * 1e6);
      const named =
        type === 'SPLIT'
          ? (tokens.get(wholeConditionId(condition_id)) ?? []).map(({ tokenId }) => tokenId)
          : [token_id];
      if (type === 'REDEEM') redeemed.add(wholeConditionId(condition_id));
      if (type !== 'TRADE' && type !== 'SPLIT') continue;
      for (const token of named) held.set(token, (held.get(token) ?? 0) + (side === 'SELL' ? -units : units));
    }
    const { data: positions } = await http.get<V2<Position>>(http.data(`/v2/positions?user=${regular}&limit=500`));
    expect(positions.length).toBeGreaterThan(2);
    for (const { token_id, current_size, condition_id } of positions) {
      expect(Math.round(current_size * 1e6)).toBe(held.get(token_id));
      expect(redeemed.has(wholeConditionId(condition_id))).toBe(false);
    }
  });

  it('show deposits only on request, and repeat an address for 15 s', async () => {
    const all = await activityOf(regular);
    const { data } = await http.get<V2<Activity>>(http.data(`/v2/activity?user=${regular}&limit=1000`));
    expect(data.length).toBe(all.filter(({ type }) => type !== 'DEPOSIT').length);
    const again = await fetch(http.data(`/v2/activity?user=${regular}&limit=1000`));
    expect([again.headers.get('x-cache'), again.headers.get('cache-control')]).toEqual([
      'Hit from cloudfront',
      'public, max-age=15',
    ]);
    await again.text();
  });

  it('reject requests that the venue rejects', async () => {
    const other = `/v2/positions?user=${maker}&limit=1`;
    const { pagination } = await http.get<V2<Position>>(http.data(other));
    for (const path of [
      '/v2/activity',
      '/v2/positions?user=me',
      `/v2/activity?user=${maker}&offset=1`,
      `/v2/activity?user=${maker}&sortDirection=ASC`,
      `/v2/activity?user=${maker}&cursor=${pagination.next_cursor}`,
      `/v2/positions?user=${maker}&cursor=nonsense`,
    ]) {
      await http.get(http.data(path), 400);
    }
    expect(await http.get(http.data(`/v2/positions?user=0x${'0'.repeat(40)}`))).toMatchObject({ data: [] });
  });
});
