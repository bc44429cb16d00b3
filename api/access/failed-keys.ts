import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { Cidr } from '../../src/domain/webhooks/address-policy.ts';
import { ApiError } from '../errors.ts';
import { clientNetwork } from './client-address.ts';

/** The invalid keys that one network may send within a minute. */
export const MAX_FAILED_KEYS = 30;
/** Concurrent look-ups of unused keys per network. After a restart many valid keys may arrive at once. */
const MAX_IN_FLIGHT = 200;
const WINDOW_MS = 60_000;
/** About 2 MB. The cache evicts the least recently seen networks first. */
const MAX_NETWORKS = 10_000;

/** The limit before the look-up of a key that is not known to be in use. */
export interface KeyGuess {
  /** Call it before the look-up. @throws ApiError `rate_limited` after too many failures. */
  begin(): void;
  /** Call it after the look-up; `isFailed` marks an invalid key. */
  end(isFailed: boolean): void;
}

/** Limits the keys that a network can try. Valid and invalid keys count alike, so a rejection reveals nothing about the key. */
export interface FailedKeys {
  of(req: IncomingMessage): KeyGuess;
}

interface Tries {
  failed: number;
  inFlight: number;
  untilMs: number;
}

interface FailedKeysOptions {
  /** The operator's proxies: only their `X-Forwarded-For` counts. */
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
    const tries = { failed: 0, inFlight: 0, untilMs: nowMs + WINDOW_MS };
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
          if (isOver || found.inFlight >= MAX_IN_FLIGHT) {
            const seconds = isOver ? Math.max(1, Math.ceil((found.untilMs - nowMs) / 1000)) : 1;
            throw new ApiError('rate_limited', 'too many failed authentications from this address', {
              headers: { 'Retry-After': String(seconds) },
            });
          }
          tries = found;
          found.inFlight += 1;
        },
        end(isFailed) {
          if (!tries) return;
          tries.inFlight -= 1;
          if (isFailed) tries.failed += 1;
        },
      };
    },
  };
}
