import { setTimeout as delay } from 'node:timers/promises';
import { openDeadline } from '../../../../src/domain/values/signals.ts';
import { signBody, standardSignature } from '../../../../src/domain/webhooks/signature.ts';
import { VERSION } from '../version.ts';

/** The deadline of an attempt, as the service has it. */
const ATTEMPT_MS = 15_000;
const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 5_000;

interface ForwardedEvent {
  readonly id: string;
  readonly type: string;
  readonly body: string;
}

/** The answer of the receiver: `status`, or the reason without one. */
export type Verdict = { ms: number } & ({ status: number; isSuccess: boolean } | { error: string });

interface ForwardOptions {
  readonly url: string;
  readonly secret: string;
  readonly signal: AbortSignal;
  now(): number;
  /** Called once per event when nothing listens at the address. */
  onWaiting(reason: string): Promise<void>;
  /** The time of an attempt. Default 15,000. */
  attemptMs?: number;
}

/**
 * Sends an event, signed as a webhook. While nothing listens at the address it waits and repeats, because the event would otherwise be
 * lost: a receiver restarts often during development. Every other outcome is the verdict.
 * @throws the reason of the signal
 */
export async function forward(event: ForwardedEvent, options: ForwardOptions): Promise<Verdict> {
  const { url, secret, signal, now, onWaiting, attemptMs = ATTEMPT_MS } = options;
  for (let attempt = 1; ; attempt += 1) {
    signal.throwIfAborted();
    const startedMs = performance.now();
    const headers = signedHeaders(secret, event, { attempt, nowMs: now(), version: VERSION });
    const deadline = openDeadline([signal], attemptMs);
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers,
        body: event.body,
        redirect: 'manual',
        signal: deadline.signal,
      });
      await response.body?.cancel();
      return { ms: elapsed(startedMs), status: response.status, isSuccess: response.ok };
    } catch (error) {
      signal.throwIfAborted();
      if (deadline.signal.aborted) return { ms: elapsed(startedMs), error: `no answer within ${attemptMs / 1_000} s` };
      const { code, reason } = failureOf(error);
      if (code !== 'ECONNREFUSED') return { ms: elapsed(startedMs), error: reason };
      if (attempt === 1) await onWaiting(reason);
      await delay(Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(attempt - 1, 8)), undefined, { signal });
    } finally {
      deadline.close();
    }
  }
}

/** The headers of one attempt, as a webhook has them (docs/webhooks.md, "The request"). */
export function signedHeaders(
  secret: string,
  event: { readonly id: string; readonly type: string; readonly body: string },
  { attempt, nowMs, version }: { attempt: number; nowMs: number; version: string },
): Record<string, string> {
  const timestamp = Math.floor(nowMs / 1_000);
  return {
    'Content-Type': 'application/json',
    'User-Agent': `oddswire-cli/${version}`,
    'X-Webhook-Signature': signBody(secret, event.body),
    // No webhook and no delivery exist: names in their place, the same on every attempt.
    'X-Webhook-Id': 'wh_listen',
    'X-Webhook-Event': event.type,
    'X-Webhook-Delivery': `dlv_listen_${event.id}`,
    'X-Webhook-Attempt': String(attempt),
    'webhook-id': event.id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': standardSignature([secret], event.id, timestamp, event.body),
  };
}

function elapsed(startedMs: number): number {
  return Math.round(performance.now() - startedMs);
}

/** The error below the "fetch failed" of `fetch`; of several addresses of a name, the first one's. */
function failureOf(error: unknown): { code: string | undefined; reason: string } {
  const cause = (error as { cause?: unknown }).cause as
    | (Error & { code?: string; errors?: (Error & { code?: string })[] })
    | undefined;
  const first = cause?.errors?.[0] ?? cause;
  return { code: first?.code, reason: first?.message || first?.code || (error as Error).message };
}
