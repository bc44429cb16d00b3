import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { Cidr } from '../../src/domain/webhooks/address-policy.ts';
import { ApiError } from '../errors.ts';
import { clientNetwork } from './client-address.ts';

/** The invalid keys that one network may send within a minute. */
export const MAX_FAILED_KEYS = 30;
/** Concurrent look-ups of unused keys per network: after a restart many valid ones may come together. */
const MAX_UNDER_WAY = 200;
const WINDOW_MS = 60_000;
/** The networks that were seen longest ago are forgotten first: about 2 MB. */
const MAX_NETWORKS = 10_000;

/** The limit before the look-up of a key that is not known to be in use. */
export interface KeyGuess {
  /** Before the look-up. @throws ApiError `rate_limited` when there were too many. */
  begin(): void;
  /** Call it after the look-up; `isFailed` marks an invalid key. */
  end(isFailed: boolean): void;
}

/** Limits how many keys a network can try, whether they are right or not: so nothing is learnt from being refused. */
export interface FailedKeys {
  of(req: IncomingMessage): KeyGuess;
}

interface Tries {
  failed: number;
  underWay: number;
  untilMs: number;
}

interface FailedKeysOptions {
  /** Ours: of them `X-Forwarded-For` is believed. */
  trustedProxies: readonly Cidr[];
  /** Epoch milliseconds. */
  now(): number;
  maxFailed?: number;
}

export function createFailedKeys(options: FailedKeysOptions): FailedKeys {
  const { trustedProxies, now, maxFailed = MAX_FAILED_KEYS } = options;
  const networks = new LRUCache<string, Tries>({ max: MAX_NETWORKS });

  function triesOf(network: string, nowMs: number): Tries {
    const known = networks.get(network);
    // A clock that was set back does not make a minute longer.
    if (known && nowMs < known.untilMs && nowMs >= known.untilMs - WINDOW_MS) return known;
    const tries = { failed: 0, underWay: 0, untilMs: nowMs + WINDOW_MS };
    networks.set(network, tries);
    return tries;
  }

  return {
    of(req) {
      let tries: Tries | undefined;
      return {
        begin() {
          const nowMs = now();
          const found = triesOf(clientNetwork(req, trustedProxies), nowMs);
          const isOver = found.failed >= maxFailed;
          if (isOver || found.underWay >= MAX_UNDER_WAY) {
            const seconds = isOver ? Math.max(1, Math.ceil((found.untilMs - nowMs) / 1000)) : 1;
            throw new ApiError('rate_limited', 'too many failed authentications from this address', {
              headers: { 'Retry-After': String(seconds) },
            });
          }
          tries = found;
          found.underWay += 1;
        },
        end(isFailed) {
          if (!tries) return;
          tries.underWay -= 1;
          if (isFailed) tries.failed += 1;
        },
      };
    },
  };
}
