import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { REGULAR, TIGHT_MAKER } from '../../../sim/traders/wallets.ts';
import { walletOf } from '../../../sim/world/identity.ts';
import { type HttpExchange, startHttpExchange } from './http-exchange.ts';

interface Activity {
  timestamp: number;
  type: string;
  size: number;
  usdcSize: number;
  transactionHash: string;
  asset: string;
  conditionId: string;
  side: string;
  outcomeIndex: number;
}
interface Position {
  asset: string;
  conditionId: string;
  size: number;
}
interface V2<Row> {
  data: Row[];
  pagination: { has_more: boolean; next_cursor: string | null };
}

let http: HttpExchange;
let exchange: HttpExchange['exchange'];
let maker = '';
let regular = '';
beforeAll(async () => {
  http = await startHttpExchange({ markets: 30, rollingSeconds: 120, speed: 2 });
  ({ exchange } = http);
  exchange.step(400);
  maker = walletOf(exchange.seed, TIGHT_MAKER).address;
  regular = walletOf(exchange.seed, REGULAR).address;
});
afterAll(() => exchange.close());

async function activityOf(user: string): Promise<Activity[]> {
  const rows: Activity[] = [];
  for (;;) {
    const path = `/activity?user=${user}&limit=500&offset=${rows.length}&sortDirection=ASC`;
    const page = await http.get<Activity[]>(http.data(path));
    if (page.length === 0) return rows;
    rows.push(...page);
  }
}

describe('the wallets of the Data API', () => {
  it('did what the tape says, with splits, redemptions and deposits around it', async () => {
    const rows = await activityOf(regular);
    const sums = (of: (row: Activity) => string, only: Activity[]) => {
      const found = new Map<string, number>();
      for (const row of only) found.set(of(row), (found.get(of(row)) ?? 0) + Math.round(row.size * 1e6));
      return found;
    };
    const traded = sums(
      ({ transactionHash, asset, side }) => `${transactionHash} ${asset} ${side}`,
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
    expect(new Set(rows.map(({ transactionHash }) => transactionHash)).size).toBeLessThan(rows.length);
    const seconds = rows.map(({ timestamp }) => timestamp);
    expect(seconds).toEqual(seconds.toSorted((a, b) => a - b));
    const others = rows.filter(({ type }) => type !== 'TRADE');
    expect(others.every(({ asset, side, outcomeIndex }) => asset === '' && side === '' && outcomeIndex === 999)).toBe(
      true,
    );
  });

  it('hold what they did, and nothing of a market that was redeemed', async () => {
    const held = new Map<string, number>();
    const tokens = new Map(exchange.state().markets.map(({ conditionId, outcomes }) => [conditionId, outcomes]));
    const redeemed = new Set<string>();
    for (const { type, asset, conditionId, side, size } of await activityOf(regular)) {
      const units = Math.round(size * 1e6);
      const named = type === 'SPLIT' ? (tokens.get(conditionId) ?? []).map(({ tokenId }) => tokenId) : [asset];
      if (type === 'REDEEM') redeemed.add(conditionId);
      if (type !== 'TRADE' && type !== 'SPLIT') continue;
      for (const token of named) held.set(token, (held.get(token) ?? 0) + (side === 'SELL' ? -units : units));
    }
    const positions = await http.get<Position[]>(http.data(`/positions?user=${regular}&sizeThreshold=0&limit=500`));
    expect(positions.length).toBeGreaterThan(2);
    for (const { asset, size, conditionId } of positions) {
      expect(Math.round(size * 1e6)).toBe(held.get(asset));
      expect(redeemed.has(conditionId)).toBe(false);
    }
  });

  it('are the same in version 2, page after page, deposits only when asked for', async () => {
    const v1 = await activityOf(regular);
    const v2: Activity[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const path: string = `/v2/activity?user=${regular}&limit=7&sort_direction=ASC&exclude_deposits_withdrawals=false&cursor=${cursor}`;
      const { data, pagination } = await http.get<V2<Record<string, never>>>(http.data(path));
      v2.push(
        ...data.map(
          (row) =>
            ({ ...row, transactionHash: row['transaction_hash'], asset: row['token_id'] }) as unknown as Activity,
        ),
      );
      cursor = pagination.next_cursor;
    }
    const key = ({ transactionHash, asset, size, type }: Activity) => [transactionHash, asset, size, type].join(' ');
    expect(v2.map(key)).toEqual(v1.map(key));
    const { data } = await http.get<V2<Activity>>(http.data(`/v2/activity?user=${regular}&limit=1000`));
    expect(data.length).toBe(v1.filter(({ type }) => type !== 'DEPOSIT').length);
  });

  it('hide dust in version 1 unless told not to', async () => {
    const all = await http.get<Position[]>(http.data(`/positions?user=${maker}&sizeThreshold=0&limit=500`));
    const shown = await http.get<Position[]>(http.data(`/positions?user=${maker}&limit=500`));
    expect(shown).toEqual(all.filter(({ size }) => size >= 1));
  });

  it('refuse what the venue refuses', async () => {
    const other = `/v2/positions?user=${maker}&limit=1`;
    const { pagination } = await http.get<V2<Position>>(http.data(other));
    for (const path of [
      '/activity',
      '/positions?user=me',
      `/v2/activity?user=${maker}&offset=1`,
      `/activity?user=${maker}&offset=10001`,
      `/v2/activity?user=${maker}&cursor=${pagination.next_cursor}`,
      `/v2/positions?user=${maker}&cursor=nonsense`,
    ]) {
      await http.get(http.data(path), 400);
    }
    expect(await http.get(http.data(`/positions?user=0x${'0'.repeat(40)}`))).toEqual([]);
  });
});
