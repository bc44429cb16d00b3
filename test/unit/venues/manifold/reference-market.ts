/** A bet of the reference market in the venue's form, with the shares that it took when it was placed. */
export interface ReferenceBet {
  wire: {
    id: string;
    contractId: string;
    createdTime: number;
    amount: number;
    shares: number;
    outcome: 'YES' | 'NO';
    probBefore: number;
    limitProb?: number;
    orderAmount: number;
    isFilled: boolean;
    isCancelled: boolean;
    isRedemption: false;
    fills: { matchedBetId: string | null; amount: number; shares: number; timestamp: number; fees?: object }[];
  };
  /** The order's time in milliseconds, independent of the stamp. */
  placedMs: number;
  takenShares: number;
  takenAmount: number;
}

export interface Order {
  outcome: 'YES' | 'NO';
  amount: number;
  limitProb?: number;
}

const NOTHING = 1e-9;

/**
 * A market maker (constant product of 500 and 500 shares) with a book of limit orders, filled in the venue's order: a taker moves the pool
 * to the next resting limit, then takes that order at its limit.
 */
export class ReferenceMarket {
  readonly bets: ReferenceBet[] = [];
  private pool = { YES: 500, NO: 500 };

  /** Probability of YES. */
  get prob(): number {
    return this.pool.NO / (this.pool.YES + this.pool.NO);
  }

  cancelAll(): void {
    for (const { wire } of this.bets) if (!wire.isFilled) wire.isCancelled = true;
  }

  place(order: Order, atMs: number, hasFees: boolean): ReferenceBet {
    const { outcome, limitProb } = order;
    const id = `bet${this.bets.length}`;
    const wire: ReferenceBet['wire'] = {
      id,
      contractId: 'contract',
      createdTime: atMs,
      amount: 0,
      shares: 0,
      outcome,
      probBefore: this.prob,
      ...(limitProb !== undefined && { limitProb }),
      orderAmount: order.amount,
      isFilled: false,
      isCancelled: false,
      isRedemption: false,
      fills: [],
    };
    const fees = hasFees ? { fees: { creatorFee: 0, platformFee: 0, liquidityFee: 0 } } : {};
    const take = (matchedBetId: string | null, amount: number, shares: number) => {
      wire.fills.push({ matchedBetId, amount, shares, timestamp: atMs, ...fees });
      wire.amount += amount;
      wire.shares += shares;
    };
    for (const maker of [...this.resting(outcome), undefined]) {
      // All resting prices are prices of YES. The taker's own limit, or near certainty, bounds the pool.
      const bound = limitProb ?? (outcome === 'YES' ? 0.99 : 0.01);
      const stop = maker === undefined || isBeyond(maker.limitProb, bound, outcome) ? bound : maker.limitProb;
      const poolAmount = Math.min(order.amount - wire.amount, this.amountTo(stop, outcome));
      if (poolAmount > NOTHING) take(null, poolAmount, this.buy(poolAmount, outcome));
      const left = order.amount - wire.amount;
      if (left <= NOTHING || maker === undefined || stop !== maker.limitProb) break;
      const price = outcome === 'YES' ? maker.limitProb : 1 - maker.limitProb;
      const shares = Math.min(left / price, (maker.wire.orderAmount - maker.wire.amount) / (1 - price));
      take(maker.wire.id, shares * price, shares);
      maker.wire.fills.push({ matchedBetId: id, amount: shares * (1 - price), shares, timestamp: atMs });
      maker.wire.amount += shares * (1 - price);
      maker.wire.shares += shares;
      maker.wire.isFilled = maker.wire.orderAmount - maker.wire.amount < NOTHING;
    }
    wire.isFilled = limitProb === undefined || order.amount - wire.amount < NOTHING;
    const bet = { wire, placedMs: atMs, takenShares: wire.shares, takenAmount: wire.amount };
    this.bets.push(bet);
    return bet;
  }

  /** Orders that rest on the other side, the best price for the taker first. */
  private resting(outcome: 'YES' | 'NO') {
    return this.bets
      .flatMap(({ wire }) =>
        wire.limitProb === undefined || wire.isFilled || wire.isCancelled || wire.outcome === outcome
          ? []
          : [{ wire, limitProb: wire.limitProb }],
      )
      .sort((a, b) => (outcome === 'YES' ? a.limitProb - b.limitProb : b.limitProb - a.limitProb));
  }

  /** Mana that moves the pool to a probability; 0 at or beyond it. */
  private amountTo(prob: number, outcome: 'YES' | 'NO'): number {
    if (!isBeyond(prob, this.prob, outcome)) return 0;
    const product = this.pool.YES * this.pool.NO;
    return outcome === 'YES'
      ? Math.sqrt((product * prob) / (1 - prob)) - this.pool.NO
      : Math.sqrt((product * (1 - prob)) / prob) - this.pool.YES;
  }

  private buy(amount: number, outcome: 'YES' | 'NO'): number {
    const { YES, NO } = this.pool;
    const other = outcome === 'YES' ? NO + amount : YES + amount;
    const own = (YES * NO) / other;
    this.pool = outcome === 'YES' ? { YES: own, NO: other } : { YES: other, NO: own };
    return (outcome === 'YES' ? YES : NO) + amount - own;
  }
}

/** Whether a taker of the outcome reaches `prob` after `from`. */
function isBeyond(prob: number, from: number, outcome: 'YES' | 'NO'): boolean {
  return outcome === 'YES' ? prob > from : prob < from;
}
