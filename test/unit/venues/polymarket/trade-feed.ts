import { VenueError } from '../../../../src/venues/errors.ts';
import type { TradesQuery } from '../../../../src/venues/polymarket/client.ts';
import { identifyTrades, readFeed } from '../../../../src/venues/polymarket/parse-trade.ts';

export const START = 1_767_841_800;

export interface Row {
  conditionId: string;
  proxyWallet: string;
  side: string;
  asset: string;
  size: number;
  price: number;
  timestamp: number;
  transactionHash: string;
}

/** A feed like the venue's: newest first, no ids, moving between two requests. */
export class Feed {
  readonly rows: Row[] = [];
  second = START;
  endBehaviour: 'inclusive' | 'exclusive' | 'ignored' | 'refused' = 'inclusive';
  /** Parameters that are not heard. */
  deafTo: readonly ('market' | 'start')[] = [];
  pageCap = 6;
  offsetCap: { after: number; beyond: 'repeat' | 'refuse' | 'empty' } | undefined;
  requests: TradesQuery[] = [];
  beforeAnswer: (feed: Feed) => void = () => undefined;

  private transactions = 0;

  /** Kind 0 repeats the print before it, once, if that was in the same second: an exact duplicate, which is legitimate. */
  trade(kind: number, second = this.second, market = 1): void {
    const last = this.rows.at(-1);
    const isTwin = this.rows.at(-2)?.transactionHash === last?.transactionHash;
    if (kind === 0 && last?.timestamp === second && last.conditionId === conditionIdOf(market) && !isTwin) {
      this.rows.push({ ...last });
      return;
    }
    this.transactions += 1;
    this.rows.push({
      proxyWallet: `0xw${kind % 3}`,
      side: kind % 2 === 0 ? 'BUY' : 'SELL',
      asset: `${market}11`,
      conditionId: conditionIdOf(market),
      size: 1 + (kind % 2),
      price: 0.5,
      timestamp: second,
      transactionHash: `0x${this.transactions}`,
    });
  }

  readonly list = async (query: TradesQuery): Promise<unknown[]> => {
    this.requests.push(query);
    this.beforeAnswer(this);
    const { end, start, market } = query;
    const isExclusive = this.endBehaviour === 'exclusive';
    const isAsked = (row: Row) => {
      if (market !== undefined && !this.deafTo.includes('market') && row.conditionId !== market) return false;
      if (start === undefined || this.deafTo.includes('start')) return true;
      return isExclusive ? row.timestamp > start : row.timestamp >= start;
    };
    if (end !== undefined && this.endBehaviour === 'refused') throw httpError(400);
    const below = (row: Row) => {
      if (end === undefined || this.endBehaviour === 'ignored') return true;
      return isExclusive ? row.timestamp < end : row.timestamp <= end;
    };
    // Stable by second, latest arrival first.
    const newestFirst = [...this.rows]
      .reverse()
      .filter((row) => isAsked(row) && below(row))
      .sort((a, b) => b.timestamp - a.timestamp);
    let { offset } = query;
    if (this.offsetCap && offset > this.offsetCap.after) {
      if (this.offsetCap.beyond === 'refuse') throw httpError(400);
      if (this.offsetCap.beyond === 'empty') return [];
      offset = this.offsetCap.after;
    }
    return newestFirst.slice(offset, offset + Math.min(query.limit, this.pageCap));
  };

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

function httpError(statusCode: number): VenueError {
  return new VenueError('polymarket', 'http_status', `HTTP ${statusCode}`, { retryable: false, statusCode });
}
