import type { Socket } from 'node:net';
import type { Logger } from './logger.ts';

/** The parts of a connected `pg.Client` that show whether it waits, and for which backend. */
interface Connected {
  /** False from a statement to the end of its answer. */
  readonly readyForQuery: boolean;
  /** The backend of the session. */
  readonly processID: number;
  readonly connection: { readonly stream: Socket };
}

/** Monotonic milliseconds, to the nearest check. */
interface Heard {
  bytesRead: number;
  /** When data last arrived. */
  heardMs: number;
  /** Since when a statement waits. */
  askedMs: number | undefined;
}

/** The sessions of a list that the server is working for; `unknown` when it answers, but cannot tell. */
export type BusySessions = ReadonlySet<number> | 'unknown';

interface SilenceOptions {
  /** How long a statement may wait for the first byte of its answer, milliseconds. */
  limitMs: number;
  log: Logger;
  /**
   * Asks the server over a connection of its own which of these sessions it is working for: none when it cannot be reached. Absent
   * when the server cannot be asked: then no statement may take longer than the limit.
   */
  findBusy?: (sessions: readonly number[]) => Promise<BusySessions>;
  /** After it fires, no statement waits longer than STOPPING_LIMIT_MS, because a stopping process has little time. */
  stopping?: AbortSignal;
}

const STOPPING_LIMIT_MS = 2_000;
/** The pause after a server rejected the question. */
const PAUSE_MS = 1_000;
const LOOKS_PER_LIMIT = 15;
/** After this many missed checks this process itself was stopped, and answers may be unread: no connection can be judged. */
const MISSED_LOOKS = 3;

/**
 * Makes an `onConnect` for a `pg.Pool`. It ends a connection that received nothing for `limitMs` while a statement waits, unless the
 * server is working for it, and with it all silent connections of the pool. This happens after a fail-over to another machine, or
 * behind a firewall that dropped the connection: nothing is refused, and TCP would retry for a quarter of an hour. The waiting
 * statements fail with a lost connection (`ETIMEDOUT`).
 */
export function closeUnresponsive(options: SilenceOptions): (client: unknown) => void {
  const { limitMs, log, findBusy, stopping } = options;
  const everyMs = Math.min(limitMs, STOPPING_LIMIT_MS) / LOOKS_PER_LIMIT;
  const connections = new Map<Connected, Heard>();
  let timer: NodeJS.Timeout | undefined;
  let lookedMs = 0;
  let isAsking = false;
  let checkedMs = Number.NEGATIVE_INFINITY;

  /** Records the connections that answered. False when this process was stopped meanwhile: its answers may be unread. */
  function listen(): boolean {
    const nowMs = performance.now();
    const lateMs = nowMs - lookedMs - everyMs;
    const isBlind = lateMs > MISSED_LOOKS * everyMs;
    lookedMs = nowMs;
    for (const [{ readyForQuery, connection }, heard] of connections) {
      const { bytesRead } = connection.stream;
      if (isBlind) heard.heardMs += lateMs;
      if (bytesRead !== heard.bytesRead) heard.heardMs = nowMs;
      heard.bytesRead = bytesRead;
      if (isBlind && heard.askedMs !== undefined) heard.askedMs += lateMs;
      heard.askedMs = readyForQuery ? undefined : (heard.askedMs ?? nowMs);
    }
    return !isBlind;
  }

  /** The latest start of silence among connections whose statement waits too long; undefined without one. */
  function silentSince(): number | undefined {
    const patienceMs = stopping?.aborted ? Math.min(limitMs, STOPPING_LIMIT_MS) : limitMs;
    let latestMs: number | undefined;
    for (const { heardMs, askedMs } of connections.values()) {
      const sinceMs = Math.max(heardMs, askedMs ?? lookedMs);
      if (lookedMs - sinceMs >= patienceMs) latestMs = Math.max(latestMs ?? sinceMs, sinceMs);
    }
    return latestMs;
  }

  async function endSilent(): Promise<void> {
    // Statements that start during the query to the server were not part of it: the next check covers them.
    const before = new Map([...connections].map(([connected, { askedMs }]) => [connected, askedMs]));
    const isSettled = (askedMs: number | undefined) => askedMs === undefined || askedMs <= lookedMs - everyMs;
    const settled = new Set([...before].filter(([, askedMs]) => isSettled(askedMs)).map(([connected]) => connected));
    const waiting = [...before].filter(([, askedMs]) => askedMs !== undefined);
    const busy = await findBusy?.(waiting.map(([{ processID }]) => processID));
    if (busy === 'unknown' || !listen()) return;
    for (const [{ processID }, heard] of connections) if (busy?.has(processID)) heard.heardMs = lookedMs;
    const silentMs = silentSince();
    if (silentMs === undefined) return;
    const ended = [...connections].filter(
      ([connected, { heardMs, askedMs }]) =>
        heardMs <= silentMs && settled.has(connected) && askedMs === before.get(connected),
    );
    if (ended.length === 0) return;
    log.warn({ connections: ended.length, limitMs }, 'the database does not answer: connections given up');
    for (const [{ connection }] of ended) {
      const error = new Error(`Connection terminated: the server did not answer for ${limitMs / 1000} s`);
      connection.stream.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
    }
  }

  function look(): void {
    if (!listen() || isAsking || lookedMs - checkedMs < PAUSE_MS || silentSince() === undefined) return;
    isAsking = true;
    void endSilent()
      .catch((error: unknown) => log.warn({ err: error }, 'could not ask the database for its active sessions'))
      .finally(() => {
        isAsking = false;
        checkedMs = lookedMs;
      });
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
    timer = setInterval(look, everyMs).unref();
  };
}
