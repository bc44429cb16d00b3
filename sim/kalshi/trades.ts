import { json, type Reply, wholeNumber } from '../server/reply.ts';
import { isoSeconds } from '../wire/time-text.ts';
import type { Trade } from '../world/trade-tape.ts';
import { combinationAfter, combinationPrint } from './combinations.ts';
import type { Directory, Tier } from './directory.ts';
import { badRequest, cursorOf, pageOf } from './query.ts';
import { tradeIdOf, tradeObject } from './wire.ts';

/**
 * `GET /markets/trades` and `GET /historical/trades`, newest first, trades of one microsecond by falling id. The cutoff divides the trades
 * between the two routes. `min_ts` and `max_ts` are seconds, both inclusive. Trades from `tapeEnd` on are hidden.
 */
export function listTrades(directory: Directory, query: URLSearchParams, tier: Tier, tapeEnd = Infinity): Reply {
  const { world, settings } = directory;
  const page = pageOf(query, 100, 1000);
  const minSecond = wholeNumber(query.get('min_ts'));
  const maxSecond = wholeNumber(query.get('max_ts'));
  if (page === undefined || minSecond === null || maxSecond === null) return badRequest('invalid parameters');
  const ticker = query.get('ticker') || undefined;
  const combination = ticker === undefined ? undefined : directory.findCombination(ticker);
  const only = ticker === undefined ? undefined : directory.find(ticker)?.spec.no;
  if (ticker !== undefined && only === undefined && combination === undefined) return json({ cursor: '', trades: [] });
  const first = tier === 'live' ? Math.max(minSecond ?? 0, settings.cutoffSecond) : (minSecond ?? 0);
  const last = tier === 'live' ? maxSecond : Math.min(maxSecond ?? Number.MAX_SAFE_INTEGER, settings.cutoffSecond - 1);
  const trades: Record<string, unknown>[] = [];
  const lastRow = page.after === undefined ? Infinity : page.after / 2;
  for (const { trade, row } of byTimeAndId(world.tape.newestFirst(only), world.options.seed, lastRow)) {
    if (trade.index >= tapeEnd || row > lastRow) continue;
    if (last !== undefined && trade.second > last) continue;
    // Newest first: no later row is in the range.
    if (trade.second < first) break;
    const market = world.markets[trade.marketNo];
    if (market === undefined) continue;
    const fill = tradeObject(trade, market, world.options.seed);
    const printed = only === undefined ? combinationAfter(trade, directory.combinations) : undefined;
    const isAsked = printed !== undefined && (combination ?? printed) === printed;
    const rows = [
      { at: 2 * row + 1, object: isAsked && combinationPrint(printed, fill, trade, world.options.seed) },
      { at: 2 * row, object: combination === undefined && fill },
    ];
    for (const { at, object } of rows) {
      if (object === false || (page.after !== undefined && at >= page.after)) continue;
      trades.push(object);
      if (trades.length === page.limit) return json({ cursor: cursorOf(at), trades });
    }
  }
  return json({ cursor: '', trades });
}

interface ListedTrade {
  readonly trade: Trade;
  /** Falls along the list; the fills of one order swap their running numbers. */
  readonly row: number;
}

/**
 * `newestFirst` with the fills of each order by falling id: the fills of an order are adjacent on the tape. It skips orders whose rows are
 * all beyond `lastRow`.
 */
function* byTimeAndId(newestFirst: Iterable<Trade>, seed: number, lastRow: number): Generator<ListedTrade> {
  let fills: Trade[] = [];
  for (const trade of newestFirst) {
    if (fills[0] !== undefined && fills[0].orderNo !== trade.orderNo) {
      yield* byId(fills, seed, lastRow);
      fills = [];
    }
    fills.push(trade);
  }
  yield* byId(fills, seed, lastRow);
}

function byId(fills: readonly Trade[], seed: number, lastRow: number): ListedTrade[] {
  const oldest = fills.at(-1);
  if (oldest === undefined || oldest.index > lastRow) return [];
  if (fills.length === 1) return [{ trade: oldest, row: oldest.index }];
  const ids = new Map(fills.map((trade) => [trade, tradeIdOf(seed, trade)]));
  const idOf = (trade: Trade) => ids.get(trade) ?? '';
  return fills
    .toSorted((a, b) => (idOf(a) < idOf(b) ? 1 : -1))
    .map((trade, at) => ({ trade, row: fills[at]?.index ?? trade.index }));
}

/** `GET /historical/cutoff`. */
export function cutoff({ settings }: Directory): Reply {
  const at = isoSeconds(settings.cutoffSecond);
  return json({
    market_settled_ts: at,
    trades_created_ts: at,
    orders_updated_ts: at,
    market_positions_last_updated_ts: at,
  });
}
