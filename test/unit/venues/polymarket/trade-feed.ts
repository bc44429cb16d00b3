import { VenueError } from '../../../../src/venues/errors.ts';
import type { TradesQuery } from '../../../../src/venues/polymarket/client.ts';
import type { DataPage } from '../../../../src/venues/polymarket/data-page.ts';
import { identifyTrades, readFeed } from '../../../../src/venues/polymarket/parse-trade.ts';

export const START = 1_767_841_800;
/** Largest pages of walks over a `Feed`: each second has its own size, and the feed's `pageCap` cuts all of them. */
export const PAGE_SIZE = 1_000;

export interface Row {
  condition_id: string;
  slug?: string;
  proxy_wallet: string;
  side: string;
  token_id: string;
  size: number;
  price: number;
  timestamp: number;
  transaction_hash: string;
}

interface Anchor {
  timestamp: number;
  sequence: number;
}

/** A feed like the venue's: newest first, without ids, moving between requests, and behind a CDN if it has a lifetime. */
export class Feed {
  readonly rows: Row[] = [];
  second = START;
  /** Whether the feed ignores the market of the request. */
  isDeaf = false;
  pageCap = 6;
  /** Lifetime of an answer in the CDN, seconds. */
  cdnSeconds = 0;
  /** Whether the venue no longer knows its cursors. */
  forgetsCursors = false;
  requests: TradesQuery[] = [];
  /** The ages of the answers so far, seconds. */
  ages: number[] = [];
  beforeAnswer: (feed: Feed) => void = () => undefined;

  private transactions = 0;
  private readonly cache = new Map<string, { page: DataPage; second: number }>();

  /** Kind 0 repeats the previous trade once if it was in the same second: exact duplicates are legitimate. */
  trade(kind: number, second = this.second, market = 1): void {
    const last = this.rows.at(-1);
    const isTwin = this.rows.at(-2)?.transaction_hash === last?.transaction_hash;
    if (kind === 0 && last?.timestamp === second && last.condition_id === conditionIdOf(market) && !isTwin) {
      this.rows.push({ ...last });
      return;
    }
    this.transactions += 1;
    this.rows.push({
      proxy_wallet: `0xw${kind % 3}`,
      side: kind % 2 === 0 ? 'BUY' : 'SELL',
      token_id: `${market}11`,
      condition_id: conditionIdOf(market),
      size: 1 + (kind % 2),
      price: 0.5,
      timestamp: second,
      transaction_hash: `0x${this.transactions}`,
    });
  }

  readonly list = async (query: TradesQuery): Promise<DataPage> => {
    this.requests.push(query);
    this.beforeAnswer(this);
    const key = JSON.stringify(query);
    const kept = this.cache.get(key);
    if (kept && this.second - kept.second < this.cdnSeconds) {
      const age = this.second - kept.second;
      this.ages.push(age);
      return { ...kept.page, ageMs: age * 1000 };
    }
    const page = this.page(query);
    this.cache.set(key, { page, second: this.second });
    this.ages.push(0);
    return page;
  };

  private page({ market, cursor, limit }: TradesQuery): DataPage {
    if (cursor !== undefined && this.forgetsCursors) throw httpError(400);
    const anchor = cursor === undefined ? undefined : (JSON.parse(cursor) as Anchor);
    const below = this.rows
      .map((row, sequence) => ({ row, sequence }))
      .filter(({ row }) => market === undefined || this.isDeaf || row.condition_id === market)
      .filter(({ row, sequence }) => anchor === undefined || isBelow(row.timestamp, sequence, anchor))
      .sort((a, b) => b.row.timestamp - a.row.timestamp || b.sequence - a.sequence);
    const found = below.slice(0, Math.min(limit, this.pageCap));
    const rows = found.map(({ row }) => row);
    const last = found.at(-1);
    if (last === undefined || found.length === below.length) return { rows, ageMs: 0 };
    const { timestamp } = last.row;
    return { rows, ageMs: 0, nextCursor: JSON.stringify({ timestamp, sequence: last.sequence }) };
  }

  /** The ids of all rows, or of some, sorted. */
  truth(isWanted: (row: Row) => boolean = () => true): string[] {
    const newestFirst = this.rows.filter(isWanted).sort((a, b) => b.timestamp - a.timestamp);
    const { records } = identifyTrades(readFeed(newestFirst, (this.second + 1) * 1000));
    return records.map((trade) => trade.tradeId).sort();
  }
}

/** The condition id of a market, by number. */
export function conditionIdOf(market: number): string {
  return `0x${String(market).padStart(64, '0')}`;
}

function isBelow(timestamp: number, sequence: number, anchor: Anchor): boolean {
  return timestamp < anchor.timestamp || (timestamp === anchor.timestamp && sequence < anchor.sequence);
}

function httpError(statusCode: number): VenueError {
  return new VenueError('polymarket', 'http_status', `HTTP ${statusCode}`, { retryable: false, statusCode });
}
