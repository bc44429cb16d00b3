import type { World } from './world/world.ts';

/** After a sleep of the machine, at most this many missed seconds are played. */
const MAX_CATCH_UP_SECONDS = 60;
const TICK_MS = 250;

/**
 * Couples simulated seconds to the wall clock: the first request after a second has begun plays it. A pause stops
 * simulated time; afterwards the clock jumps to the wall's second, or keeps its lead after manual steps.
 */
export class LiveClock {
  private readonly world: World;
  private readonly nowMs: () => number;
  /** Called after played seconds. */
  onPlayed: () => void = () => undefined;
  private timer: NodeJS.Timeout | undefined;
  private leadSeconds = 0;
  private paused = false;

  constructor(world: World, nowMs: () => number) {
    this.world = world;
    this.nowMs = nowMs;
  }

  get isPaused(): boolean {
    return this.paused;
  }

  start(): void {
    this.leadSeconds = Math.max(0, this.world.second - this.wallSecond());
    this.timer = setInterval(() => this.catchUp(), TICK_MS);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Stops time without playing the missed seconds. */
  hold(): void {
    this.paused = true;
  }

  pause(): void {
    this.catchUp();
    this.hold();
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.leadSeconds = Math.max(0, this.world.second - this.wallSecond());
    this.world.skipTo(this.wallSecond());
  }

  /** Plays the seconds that have begun since the last call. */
  catchUp(): void {
    if (this.paused) return;
    const target = this.wallSecond() + this.leadSeconds;
    const before = this.world.version;
    this.world.skipTo(target - MAX_CATCH_UP_SECONDS);
    while (this.world.second < target) this.world.step();
    if (this.world.version !== before) this.onPlayed();
  }

  private wallSecond(): number {
    return Math.floor(this.nowMs() / 1000);
  }
}
