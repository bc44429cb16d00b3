import { uuidv7 } from 'uuidv7';
import type { FeedGap, FeedListener, FeedLoss, FeedMarket, GapReason } from './port.ts';

interface OpenGap {
  readonly id: string;
  readonly of: FeedLoss['of'];
  readonly reason: GapReason;
  readonly fromMs: number;
  readonly marketIds: readonly string[];
  /** Markets that did not recover yet. */
  readonly open: Set<string>;
}

/** The gaps of one connection. A gap ends when each of its markets has new data; a market is in one gap of books at most. */
export class FeedGaps {
  readonly #listener: Pick<FeedListener, 'onGapStart' | 'onGapEnd'>;
  readonly #gaps = new Set<OpenGap>();
  readonly #byMarket = new Map<string, OpenGap>();
  readonly #marketOf = new Map<string, string>();

  constructor(listener: Pick<FeedListener, 'onGapStart' | 'onGapEnd'>) {
    this.#listener = listener;
  }

  start(loss: { of: FeedLoss['of']; reason: GapReason; markets: readonly FeedMarket[]; fromMs: number }): void {
    const { of, reason, markets, fromMs } = loss;
    const fresh = markets.filter(({ marketId }) => of !== 'books' || !this.#byMarket.has(marketId));
    if (fresh.length === 0) return;
    const marketIds = fresh.map(({ marketId }) => marketId);
    const gap = { id: uuidv7(), of, reason, fromMs, marketIds, open: new Set(marketIds) };
    this.#gaps.add(gap);
    if (of === 'books') {
      for (const { marketId, outcomeIds } of fresh) {
        this.#byMarket.set(marketId, gap);
        for (const outcomeId of outcomeIds) this.#marketOf.set(outcomeId, marketId);
      }
    }
    this.#listener.onGapStart(toFeedGap(gap));
  }

  /** An outcome has new data. */
  recovered(outcomeId: string, nowMs: number): void {
    if (this.#byMarket.size === 0) return;
    const marketId = this.#marketOf.get(outcomeId);
    if (marketId !== undefined) this.forget([marketId], nowMs);
  }

  /** These markets have no gap any more. */
  forget(marketIds: readonly string[], nowMs: number): void {
    for (const marketId of marketIds) {
      const gap = this.#byMarket.get(marketId);
      if (gap === undefined) continue;
      this.#byMarket.delete(marketId);
      gap.open.delete(marketId);
      if (gap.open.size === 0) this.#end(gap, nowMs);
    }
  }

  recoverAll(nowMs: number): void {
    this.forget([...this.#byMarket.keys()], nowMs);
  }

  /** Gaps of trades and of markets are over at once: the next message has arrived, and a poll reads the missing ones. */
  endOf(of: FeedLoss['of'], nowMs: number): void {
    for (const gap of [...this.#gaps].filter((each) => each.of === of)) this.#end(gap, nowMs);
  }

  #end(gap: OpenGap, nowMs: number): void {
    this.#gaps.delete(gap);
    this.#listener.onGapEnd({ ...toFeedGap(gap), toMs: Math.max(nowMs, gap.fromMs) });
  }
}

function toFeedGap({ open: _, ...gap }: OpenGap): FeedGap {
  return gap;
}
