import { setTimeout as delay } from 'node:timers/promises';
import type { Fleet } from '../../support/processes/fleet.ts';
import { API_KEY } from '../../support/processes/system.ts';

const EVERY_MS = 50;
const ANSWER_LIMIT_MS = 15_000;
/** One in this many calls is a write. */
const WRITE_EVERY = 10;

interface Answer {
  readonly status: number;
  readonly code: string | undefined;
  readonly isEnvelope: boolean;
}

/**
 * Continuously sends requests to the APIs that need the database, and test events to a webhook if one is given; counts the
 * answers.
 */
export class ApiWatch {
  /** The count of each answer: `200`, `503 not_ready`. A test event is `202`. */
  readonly counts = new Map<string, number>();
  /** Answers that no client should get: none at all, or one without the envelope. */
  readonly improper: string[] = [];
  readonly #fleet: Fleet;
  readonly #webhookId: string | undefined;
  readonly #answerLimitMs: number;
  #isOver = false;
  #asked = 0;
  readonly #loop: Promise<void>;

  constructor(fleet: Fleet, webhookId?: string, answerLimitMs = ANSWER_LIMIT_MS) {
    this.#fleet = fleet;
    this.#webhookId = webhookId;
    this.#answerLimitMs = answerLimitMs;
    this.#loop = this.#repeat();
  }

  /** Resolves when the last request was answered. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#loop;
  }

  async #repeat(): Promise<void> {
    while (!this.#isOver) {
      try {
        const { status, code, isEnvelope } = await this.#ask();
        const label = code === undefined ? String(status) : `${status} ${code}`;
        this.counts.set(label, (this.counts.get(label) ?? 0) + 1);
        if (!isEnvelope) this.improper.push(`no envelope: ${label}`);
      } catch (error) {
        this.improper.push(String(error));
      }
      await delay(EVERY_MS);
    }
  }

  async #ask(): Promise<Answer> {
    this.#asked += 1;
    const apis = this.#fleet.apis();
    const isWrite = this.#webhookId !== undefined && this.#asked % WRITE_EVERY === 0;
    // Answers are cached for a second, so each request differs.
    const read = `/v1/polymarket/markets?status=open&limit=${(this.#asked % 40) + 1}`;
    const path = isWrite ? `/v1/webhooks/${this.#webhookId}/test` : read;
    const response = await fetch((apis[this.#asked % apis.length] ?? '') + path, {
      method: isWrite ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${API_KEY}`, 'x-api-key': API_KEY },
      signal: AbortSignal.timeout(this.#answerLimitMs),
    });
    const body = JSON.parse(await response.text()) as { success?: boolean; error?: { code?: string }; meta?: unknown };
    const { code } = body.error ?? {};
    return {
      status: response.status,
      code,
      isEnvelope: body.success === response.ok && (code !== undefined) !== response.ok,
    };
  }
}
