import { setTimeout as delay } from 'node:timers/promises';
import type { RandomStream } from '../../../sim/random.ts';
import type { Fleet } from '../../support/processes/fleet.ts';
import { CallRefusedError } from '../../support/processes/system.ts';
import type { CampaignLog } from './campaign-log.ts';
import { type Crossing, type Crossings, hundredths } from './crossings.ts';

export interface NewAlert {
  tokenId: string;
  condition: 'above' | 'below';
  target: string;
  /** Default: a random subscription of the campaign. */
  webhookId?: string;
}

/** The average time between two alerts, and between two forced crossings. */
const ALERT_EVERY_MS = 350;
const CROSSING_EVERY_MS = 1_500;
/** Markets reserved for the probes. */
export const SPARE_MARKETS = 3;
/** Limits of one call, of one alert with all its calls, and the pause between two calls. A stopped process never answers. */
const CALL_LIMIT_MS = 4_000;
const ALERT_LIMIT_MS = 120_000;
const AGAIN_MS = 200;

/** Creates alerts continuously, on both sides of prices, so that there is always work, and forces crossings of some. */
export class AlertLoad {
  /** Alerts that the API confirmed. */
  readonly made: string[] = [];
  /** Failures that no injected fault explains. */
  readonly problems: string[] = [];
  /** Calls that met a fault. */
  failedCalls = 0;
  readonly webhookIds: string[] = [];
  readonly #fleet: Fleet;
  readonly #crossings: Crossings;
  readonly #random: RandomStream;
  readonly #log: CampaignLog;
  #isOver = false;
  #loops: Promise<unknown> = Promise.resolve();
  #count = 0;

  constructor(fleet: Fleet, crossings: Crossings, random: RandomStream, log: CampaignLog) {
    this.#fleet = fleet;
    this.#crossings = crossings;
    this.#random = random;
    this.#log = log;
  }

  start(): void {
    this.#loops = Promise.all([
      this.#repeat(ALERT_EVERY_MS, () => this.#createNearPrice()),
      this.#repeat(CROSSING_EVERY_MS, async () => void (await this.cross(SPARE_MARKETS))),
    ]);
  }

  /** Resolves when every call in flight has ended. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#loops;
  }

  /** Creates an alert, with one idempotency key for all retries; returns its id. */
  async create({ tokenId, condition, target, webhookId }: NewAlert): Promise<string> {
    this.#count += 1;
    const headers = { 'idempotency-key': `campaign-${this.#count}` };
    const chosen = webhookId ?? this.#random.pick(this.webhookIds);
    const body = { tokenMint: tokenId, condition, price: Number(target), webhookId: chosen };
    const deadline = performance.now() + ALERT_LIMIT_MS;
    for (;;) {
      try {
        const signal = AbortSignal.timeout(CALL_LIMIT_MS);
        const { id } = await this.#fleet.call<{ id: string }>('POST', '/v1/alerts', body, { headers, signal });
        this.made.push(id);
        this.#log.note('alert', { id, tokenId, condition, target });
        return id;
      } catch (error) {
        this.failedCalls += 1;
        // 409: the previous call is still in flight.
        const isFinal = error instanceof CallRefusedError && error.status < 500 && error.status !== 409;
        if (isFinal || performance.now() > deadline) throw error;
        await delay(AGAIN_MS);
      }
    }
  }

  /** Creates an alert on a free market and forces the price across its target; undefined when too few markets are free. */
  async cross(spareMarkets = 0, webhookId?: string): Promise<Crossing | undefined> {
    const course = this.#crossings.plan(spareMarkets);
    if (course === undefined) return undefined;
    try {
      const alertId = await this.create({ ...course, ...(webhookId !== undefined && { webhookId }) });
      return this.#crossings.force(course, alertId);
    } catch (error) {
      this.#crossings.forget(course);
      throw error;
    }
  }

  async #createNearPrice(): Promise<void> {
    const open = this.#crossings.open();
    if (open.length === 0) return;
    const outcome = this.#random.pick(this.#random.pick(open).outcomes);
    const away = this.#random.between(1, 5);
    const condition = this.#random.below(2) === 0 ? 'above' : 'below';
    const target = hundredths(outcome) + (condition === 'above' ? away : -away);
    const inside = Math.min(99, Math.max(1, target));
    await this.create({ tokenId: outcome.tokenId, condition, target: (inside / 100).toFixed(2) });
  }

  async #repeat(everyMs: number, act: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      await act().catch((error: unknown) => {
        this.problems.push(String(error));
        this.#log.note('problem', { error: String(error) });
      });
      await delay(this.#random.between(everyMs / 2, (everyMs * 3) / 2));
    }
  }
}
