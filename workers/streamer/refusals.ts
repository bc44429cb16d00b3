import type { Logger } from '../../src/observe/logger.ts';

/**
 * Logs the refusals of a venue: one line per reason, although each connection repeats its handshake every minute. A line follows when the
 * reason changes, and when the venue refuses again after it accepted all connections.
 */
export class Refusals {
  readonly #log: Logger;
  readonly #venue: string;
  /** The reasons of the refused connections by their parts. */
  readonly #reasons = new Map<number, string>();

  constructor(log: Logger, venue: string) {
    this.#log = log;
    this.#venue = venue;
  }

  note(part: number, detail: string): void {
    const reason = withoutSeconds(detail);
    const isKnown = [...this.#reasons.values()].includes(reason);
    this.#reasons.set(part, reason);
    if (!isKnown) this.#log.warn({ venue: this.#venue, part, detail }, 'feed refused by the venue');
  }

  /** The connection of this part has data. */
  accepted(part: number): void {
    if (!this.#reasons.delete(part) || this.#reasons.size > 0) return;
    this.#log.info({ venue: this.#venue }, 'feed accepted by the venue again');
  }

  /** The part has no connection any more. */
  forget(part: number): void {
    this.#reasons.delete(part);
  }
}

/** The measured difference of the clocks varies by a second. */
function withoutSeconds(detail: string): string {
  return detail.replace(/ -?\d+ s$/, '');
}
