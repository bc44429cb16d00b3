import type { Socket } from 'node:net';
import type { Logger } from './logger.ts';

/** The parts of a connected `pg.Client` that say whether it waits, and for whom. */
interface Connected {
  /** False from a statement to the end of its answer. */
  readonly readyForQuery: boolean;
  /** Of the session on the server. */
  readonly processID: number;
  readonly connection: { readonly stream: Socket };
}

/** Monotonic milliseconds, to the nearest look. */
interface Heard {
  bytesRead: number;
  /** When something last came. */
  heardMs: number;
  /** Since when a statement waits. */
  askedMs: number | undefined;
}

interface SilenceOptions {
  /** How long a statement may wait for the first word of its answer, milliseconds. */
  limitMs: number;
  log: Logger;
  /**
   * Which of these sessions the server says it is working for, asked over a connection of its own; none when it does not answer.
   * Never rejects. Absent: no statement takes as long as the limit.
   */
  findBusy?: (sessions: readonly number[]) => Promise<ReadonlySet<number>>;
}

const LOOKS_PER_LIMIT = 15;
/** With so many looks missed this process stood still, and what came meanwhile is unread: nothing is known of anybody. */
const MISSED_LOOKS = 3;

/**
 * Makes an `onConnect` for a `pg.Pool`: a connection on which nothing came for `limitMs` while a statement waits for its answer is
 * ended, unless the server is working for it, and with it all of the pool that were not heard since. So it is after a fail-over to
 * another machine, or behind a firewall that forgot its connections: nothing is refused, and TCP would go on trying for a quarter
 * of an hour. Whoever waits is told that the connection was lost (`ETIMEDOUT`).
 */
export function endWhenSilent({ limitMs, log, findBusy }: SilenceOptions): (client: unknown) => void {
  const everyMs = limitMs / LOOKS_PER_LIMIT;
  const connections = new Map<Connected, Heard>();
  let timer: NodeJS.Timeout | undefined;
  let lookedMs = 0;
  let isAsking = false;

  function listen(nowMs: number): void {
    const isBlind = nowMs - lookedMs > MISSED_LOOKS * everyMs;
    lookedMs = nowMs;
    for (const [{ readyForQuery, connection }, heard] of connections) {
      const { bytesRead } = connection.stream;
      if (isBlind || bytesRead !== heard.bytesRead) heard.heardMs = nowMs;
      heard.bytesRead = bytesRead;
      heard.askedMs = readyForQuery ? undefined : (heard.askedMs ?? nowMs);
    }
  }

  /** Since when the one is silent that fell silent last, of those whose statement waits too long; undefined when none does. */
  function silentSince(): number | undefined {
    let latestMs: number | undefined;
    for (const { heardMs, askedMs } of connections.values()) {
      const sinceMs = Math.max(heardMs, askedMs ?? lookedMs);
      if (lookedMs - sinceMs >= limitMs) latestMs = Math.max(latestMs ?? sinceMs, sinceMs);
    }
    return latestMs;
  }

  async function look(): Promise<void> {
    listen(performance.now());
    if (silentSince() === undefined || isAsking) return;
    isAsking = true;
    const waiting = [...connections].filter(([, { askedMs }]) => askedMs !== undefined);
    const busy = await findBusy?.(waiting.map(([{ processID }]) => processID));
    isAsking = false;
    listen(performance.now());
    for (const [{ processID }, heard] of connections) if (busy?.has(processID)) heard.heardMs = lookedMs;
    const silentMs = silentSince();
    if (silentMs === undefined) return;
    const ended = [...connections].filter(([, { heardMs }]) => heardMs <= silentMs);
    log.warn({ connections: ended.length, limitMs }, 'the database does not answer: connections given up');
    for (const [{ connection }] of ended) {
      const error = new Error(`Connection terminated: the server did not answer for ${limitMs / 1000} s`);
      connection.stream.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
    }
  }

  return (client) => {
    const connected = client as Connected;
    const { stream } = connected.connection;
    const nowMs = performance.now();
    connections.set(connected, { bytesRead: stream.bytesRead, heardMs: nowMs, askedMs: undefined });
    stream.once('close', () => {
      connections.delete(connected);
      if (connections.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    });
    if (timer !== undefined) return;
    lookedMs = nowMs;
    timer = setInterval(() => void look(), everyMs).unref();
  };
}
