const BUCKET_SECONDS = 300;
const BUCKETS = 288;

/** The totals of a market's trades: dollars in millionths, and shares in millionths. */
export interface Traded {
  readonly microUsd: number;
  readonly microShares: number;
}

/** The totals and the last price of a market over the past 24 h, in 5-minute buckets. The oldest bucket leaves as a whole. */
export class RollingVolume {
  private readonly microUsd = new Float64Array(BUCKETS);
  private readonly microShares = new Float64Array(BUCKETS);
  private readonly lastTicks = new Int16Array(BUCKETS);
  private bucket: number | undefined;
  private usdSum = 0;
  private shareSum = 0;
  private firstTicks: number | undefined;

  add(second: number, { microUsd, microShares }: Traded, ticks: number): void {
    this.advance(second);
    const slot = Math.floor(second / BUCKET_SECONDS) % BUCKETS;
    this.microUsd[slot] = (this.microUsd[slot] ?? 0) + microUsd;
    this.microShares[slot] = (this.microShares[slot] ?? 0) + microShares;
    this.usdSum += microUsd;
    this.shareSum += microShares;
    this.lastTicks[slot] = ticks;
    this.firstTicks ??= ticks;
  }

  /** Everything traded in the 24 h that end at `second`. */
  total(second: number): Traded {
    this.advance(second);
    return { microUsd: this.usdSum, microShares: this.shareSum };
  }

  /** The last price `secondsAgo` before `second`, the first price of a younger market; undefined before a trade. */
  ticksBefore(second: number, secondsAgo: number): number | undefined {
    if (this.firstTicks === undefined) return undefined;
    this.advance(second);
    const back = Math.min(BUCKETS - 1, Math.floor(secondsAgo / BUCKET_SECONDS));
    const ticks = this.lastTicks[(Math.floor(second / BUCKET_SECONDS) - back + BUCKETS) % BUCKETS];
    return ticks === undefined || ticks === 0 ? this.firstTicks : ticks;
  }

  private advance(second: number): void {
    const now = Math.floor(second / BUCKET_SECONDS);
    if (this.bucket === undefined) {
      this.bucket = now;
      return;
    }
    const from = Math.max(this.bucket + 1, now - BUCKETS + 1);
    const carried = this.lastTicks[this.bucket % BUCKETS] ?? 0;
    for (let bucket = from; bucket <= now; bucket += 1) {
      const slot = bucket % BUCKETS;
      this.usdSum -= this.microUsd[slot] ?? 0;
      this.shareSum -= this.microShares[slot] ?? 0;
      this.microUsd[slot] = 0;
      this.microShares[slot] = 0;
      this.lastTicks[slot] = carried;
    }
    this.bucket = Math.max(this.bucket, now);
  }
}
