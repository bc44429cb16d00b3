import { hash } from 'node:crypto';
import { within } from '../../src/domain/values/signals.ts';
import type { AccountUsage, AddUsage, FailureUsage, UsageEntry, UsageKind } from '../../src/domain/values/usage.ts';
import type { Logger } from '../../src/observe/logger.ts';

const WINDOW_MS = 60_000;
const SYNC_EVERY_MS = 1_000;
/** A sync that takes longer fails: the store counts as unavailable. */
const SYNC_LIMIT_MS = 2_000;
/** Sources of failures that a process counts separately within a window. Further sources share one count. */
const MAX_SOURCES = 10_000;
const OTHER_SOURCES = 0n;

/** Whether one more request is within the limit, and the remainder. */
export interface Admission {
  isAdmitted: boolean;
  /** Per window. */
  limit: number;
  remaining: number;
  /** Until the window ends, whole seconds, at least 1. */
  resetSeconds: number;
}

/**
 * Counts the usage of accounts and the failures of sources against their limits per minute, for all API processes together. No request
 * waits for the store: each process counts in memory and publishes its counts once a second. Between two syncs a process does not know the
 * counts of the others, so an account may exceed its limit by the requests that other processes admit within that second. While the store
 * is unavailable, each process limits by its own counts.
 */
export interface AccountLimits {
  /** Counts one request within the limit. Null when the account has no limit. `override` is the account's own limit per minute. */
  take(kind: AccountUsage, accountId: bigint, override: number | null): Admission | null;
  /** The same without counting a request: `isAdmitted` states whether the next one would be within the limit. */
  look(kind: AccountUsage, accountId: bigint, override: number | null): Admission | null;
  /** Counts one failure of a source within the limit. Only failures are counted, so it never affects a valid credential. */
  takeFailure(kind: FailureUsage, source: string, limit: number): Admission;
  /** Publishes the admitted counts now, and reads those of the other processes. Never throws. */
  sync(): Promise<void>;
  /** Ends the timer and syncs. */
  close(): Promise<void>;
}

interface AccountLimitsOptions {
  addUsage: AddUsage;
  /** Requests per minute, 0: no limit. Cold reads per minute, 0: no cold reads. */
  defaults: Readonly<Record<AccountUsage, number>>;
  log: Logger;
  /** Epoch milliseconds: windows begin at the same moment in every process. */
  now(): number;
  syncLimitMs?: number;
}

/** The usage of one subject and kind in its current window. */
interface Use {
  startMs: number;
  /** The count of the store, and the requests admitted here since: unsent, or being sent. */
  known: number;
  unsent: number;
  sending: number;
}

export function createAccountLimits(options: AccountLimitsOptions): AccountLimits {
  const { addUsage, defaults, log, now, syncLimitMs = SYNC_LIMIT_MS } = options;
  const uses: Readonly<Record<UsageKind, Map<bigint, Use>>> = {
    requests: new Map(),
    cold_reads: new Map(),
    failed_keys: new Map(),
    failed_logins: new Map(),
  };
  let isUnavailable = false;
  let syncing: Promise<void> | undefined;

  function currentUse(kind: UsageKind, subject: bigint, nowMs: number): Use {
    let use = uses[kind].get(subject);
    // A clock that was set back does not make a window longer.
    if (use && nowMs < use.startMs + WINDOW_MS && nowMs >= use.startMs) return use;
    use = { startMs: windowStartMs(subject, nowMs), known: 0, unsent: 0, sending: 0 };
    uses[kind].set(subject, use);
    return use;
  }

  /** The counts to send, marked as being sent; past windows are dropped. */
  function collect(): { entry: UsageEntry; use: Use }[] {
    const batch: { entry: UsageEntry; use: Use }[] = [];
    const nowMs = now();
    for (const kind of Object.keys(uses) as UsageKind[]) {
      for (const [subject, use] of uses[kind]) {
        if (nowMs >= use.startMs + WINDOW_MS || nowMs < use.startMs) uses[kind].delete(subject);
        else if (use.unsent > 0) {
          batch.push({ entry: { kind, subject, windowStartMs: use.startMs, used: use.unsent }, use });
          use.sending = use.unsent;
          use.unsent = 0;
        }
      }
    }
    return batch;
  }

  async function syncOnce(): Promise<void> {
    const batch = collect();
    if (batch.length === 0) return;
    try {
      const totals = await within(syncLimitMs, addUsage(batch.map(({ entry }) => entry)), () => {
        throw new Error(`the store of account limits did not answer in ${syncLimitMs} ms`);
      });
      batch.forEach(({ use }, i) => {
        // A store that lost its data returns less than this process has counted.
        use.known = Math.max(use.known + use.sending, totals[i] ?? 0);
        use.sending = 0;
      });
      if (isUnavailable) log.info('account limits are shared between processes again');
      isUnavailable = false;
    } catch (error) {
      // If the store counted the batch before its answer was lost, the batch counts twice until the window ends (at most a minute).
      for (const { use } of batch) {
        use.unsent += use.sending;
        use.sending = 0;
      }
      if (!isUnavailable) log.warn({ err: error }, 'account limits are not shared between processes');
      isUnavailable = true;
    }
  }

  function sync(): Promise<void> {
    syncing ??= syncOnce().finally(() => {
      syncing = undefined;
    });
    return syncing;
  }

  /** `count` is 1 for a request, 0 for a look. */
  function admit(kind: UsageKind, subject: bigint, limit: number, count: 0 | 1 = 1): Admission {
    const nowMs = now();
    const use = currentUse(kind, subject, nowMs);
    const used = use.known + use.sending + use.unsent;
    const isAdmitted = used < limit;
    if (isAdmitted) use.unsent += count;
    return {
      isAdmitted,
      limit,
      remaining: isAdmitted ? limit - used - count : 0,
      resetSeconds: Math.max(1, Math.ceil((use.startMs + WINDOW_MS - nowMs) / 1000)),
    };
  }

  const timer = setInterval(() => void sync(), SYNC_EVERY_MS);
  timer.unref();

  return {
    take(kind, accountId, override) {
      const limit = override ?? defaults[kind];
      return kind === 'requests' && limit === 0 ? null : admit(kind, accountId, limit);
    },
    look(kind, accountId, override) {
      const limit = override ?? defaults[kind];
      return kind === 'requests' && limit === 0 ? null : admit(kind, accountId, limit, 0);
    },
    takeFailure(kind, source, limit) {
      const subject = subjectOf(source);
      const isSeparate = uses[kind].has(subject) || uses[kind].size < MAX_SOURCES;
      return admit(kind, isSeparate ? subject : OTHER_SOURCES, limit);
    },
    sync,
    async close() {
      clearInterval(timer);
      await syncing;
      await sync();
    },
  };
}

/** 63 bits of a hash: the store counts by numbers. */
function subjectOf(source: string): bigint {
  return BigInt.asUintN(63, hash('sha256', source, 'buffer').readBigUInt64BE());
}

/** Windows of different subjects begin in different seconds, so that rejected clients do not all return at the same moment. */
function windowStartMs(subject: bigint, nowMs: number): number {
  const offsetMs = Number(subject % 60n) * 1_000;
  return Math.floor((nowMs - offsetMs) / WINDOW_MS) * WINDOW_MS + offsetMs;
}
