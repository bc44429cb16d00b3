import { parseUrl } from '../domain/values/parse-url.ts';
import { parseRetryAfter } from '../domain/values/retry-after.ts';
import { type AddressRules, PUBLIC_ONLY } from '../domain/webhooks/address-policy.ts';
import type { AttemptErrorCode } from '../domain/webhooks/event.ts';
import { responseHeaders, secretsOf, secretsOfHeader } from '../domain/webhooks/response-headers.ts';
import { signBody, standardSignature } from '../domain/webhooks/signature.ts';
import { inspectWebhookUrl } from '../domain/webhooks/url.ts';
import {
  type AttemptOutcome,
  attemptErrorCode,
  type FailedOutcome,
  type OutgoingDelivery,
  SenderFaultError,
} from './attempt.ts';
import { createConnectionSlots, type ReleaseSlot } from './connection-slots.ts';
import { type Exchange, exchange } from './exchange.ts';
import { createGuardedAgent } from './guarded-agent.ts';
import { createResolver, type NameResolver } from './resolver.ts';

const DEFAULT_DEADLINE_MS = 15_000;
const DEFAULT_CONNECT_TIMEOUT_MS = 5000;
/** An account alone uses half of them, which is well above the eight deliveries in flight per subscription. */
const DEFAULT_CONNECTIONS_PER_ORIGIN = 128;
/** The wait for a connection: far below the lease of a claim, together with the deadline of the attempt. */
const MAX_SLOT_WAIT_MS = 3_000;

interface SenderOptions {
  /** The version of oddswire, for the User-Agent. */
  readonly version: string;
  /** WEBHOOK_TIMEOUT_MS: one deadline over name look-up, connection, headers and body. Default 15 000. */
  readonly deadlineMs?: number;
  /** Over name look-up, TCP and TLS, within the deadline. Default 5000. */
  readonly connectTimeoutMs?: number;
  /** Default: public addresses only. */
  readonly rules?: AddressRules;
  /** The text of WEBHOOK_CA_FILE: PEM certificates trusted beside the usual roots. */
  readonly extraCaPem?: string;
  /** WEBHOOK_PROXY_URL: every connection goes through it. Default: directly. */
  readonly proxyUrl?: string;
  /** Concurrent attempts per origin, shared among accounts. Default 128. */
  readonly connectionsPerOrigin?: number;
  /** Default: DNS. `close` also closes a resolver that was passed in. */
  readonly resolver?: NameResolver;
  /** Wall clock, epoch milliseconds. */
  readonly now?: () => number;
}

export interface Sender {
  /**
   * The right to one attempt at the origin of this URL, a fair share among accounts. Take it before `send`, whose deadline begins with the
   * attempt, and return it afterwards. Null when no connection became free in time, or after an abort: the attempt was not made.
   */
  readonly reserve: (url: string, account: bigint, signal?: AbortSignal) => Promise<ReleaseSlot | null>;
  /**
   * Makes exactly one HTTP attempt. Any behaviour of the receiver, its name servers or the network is an outcome. Throws
   * SenderFaultError (retryable) when this machine could not make the attempt, InvalidSecretError for an unusable
   * secret, and undici's argument errors when an id is not a valid header value.
   */
  readonly send: (delivery: OutgoingDelivery) => Promise<AttemptOutcome>;
  /** Accepts no more deliveries, waits for deliveries in flight (at most one deadline), then closes every connection. */
  readonly close: () => Promise<void>;
}

/** A sender with its own connections. Throws TypeError when `extraCaPem` contains no usable certificate. */
export function createSender(options: SenderOptions): Sender {
  const { version, rules = PUBLIC_ONLY, deadlineMs = DEFAULT_DEADLINE_MS, now = Date.now } = options;
  const resolver = options.resolver ?? createResolver();
  const connectionsPerOrigin = options.connectionsPerOrigin ?? DEFAULT_CONNECTIONS_PER_ORIGIN;
  const slots = createConnectionSlots(connectionsPerOrigin);
  const agent = createGuardedAgent({
    resolver,
    rules,
    // A connection attempt that outlives its request would occupy the place of another request.
    connectTimeoutMs: Math.min(options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS, deadlineMs),
    connectionsPerOrigin,
    ...(options.extraCaPem === undefined ? {} : { extraCaPem: options.extraCaPem }),
    ...(options.proxyUrl === undefined ? {} : { proxyUrl: options.proxyUrl }),
  });
  const inFlight = new Set<Promise<unknown>>();
  let closed = false;

  async function attempt(delivery: OutgoingDelivery): Promise<AttemptOutcome> {
    const startedMs = performance.now();
    const durationMs = () => Math.round(performance.now() - startedMs);
    const problem = inspectWebhookUrl(delivery.url, rules);
    if (problem !== null) {
      const errorCode = problem.kind === 'blocked' ? 'blocked_address' : 'invalid_url';
      return { kind: 'failed', errorCode, durationMs: durationMs() };
    }
    const body = Buffer.from(delivery.body, 'utf8');
    const headers = attemptHeaders(delivery, body, Math.floor(now() / 1000), version);
    const url = new URL(delivery.url);
    const result = await exchange(agent, { url, headers, body }, deadlineMs);
    const secrets = [
      ...delivery.secrets.map(keyText),
      ...Object.values(delivery.headers ?? {}).flatMap(secretsOfHeader),
      ...secretsOf(url),
    ];
    return outcomeOf(result, { durationMs: durationMs(), nowMs: now(), secrets });
  }

  return {
    reserve(url, account, signal) {
      const origin = parseUrl(url)?.origin ?? url;
      return slots.acquire({ origin, account, maxWaitMs: MAX_SLOT_WAIT_MS, ...(signal && { signal }) });
    },

    async send(delivery) {
      if (closed) throw new SenderFaultError('the sender is closed');
      const sending = attempt(delivery);
      inFlight.add(sending);
      try {
        return await sending;
      } finally {
        inFlight.delete(sending);
      }
    },

    async close() {
      closed = true;
      await Promise.allSettled(inFlight);
      resolver.close();
      await agent.destroy();
    },
  };
}

/** Both signatures over one buffer. Without Accept-Encoding, because nothing is ever decompressed. */
function attemptHeaders(delivery: OutgoingDelivery, body: Buffer, timestampSeconds: number, version: string) {
  const [currentSecret] = delivery.secrets;
  const common = { ...delivery.headers, 'Content-Type': 'application/json', 'User-Agent': `oddswire/${version}` };
  if (delivery.isSigned === false) return common;
  return {
    ...common,
    'X-Webhook-Signature': signBody(currentSecret, body),
    'X-Webhook-Id': delivery.webhookId,
    'X-Webhook-Event': delivery.eventType,
    'X-Webhook-Delivery': delivery.deliveryId,
    'X-Webhook-Attempt': String(delivery.attemptNumber),
    'webhook-id': delivery.eventId,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': standardSignature(delivery.secrets, delivery.eventId, timestampSeconds, body),
    ...(delivery.skipped !== undefined && { 'X-Webhook-Skipped': delivery.skipped.join(',') }),
  };
}

/** An answer may repeat the key without its prefix. */
function keyText(secret: string): string {
  return secret.replace(/^whsec_/, '');
}

function outcomeOf(
  result: Exchange,
  { durationMs, nowMs, secrets }: { durationMs: number; nowMs: number; secrets: readonly string[] },
): AttemptOutcome {
  if ('error' in result) return { kind: 'failed', errorCode: attemptErrorCode(result.error), durationMs };
  const { statusCode, headers, excerpt: responseExcerpt } = result;
  const answer = { statusCode, durationMs, responseExcerpt, responseHeaders: responseHeaders(headers, secrets) };
  if (statusCode < 300) return { kind: 'delivered', ...answer };
  const errorCode: AttemptErrorCode = statusCode < 400 ? 'redirect' : 'http_status';
  const failed: FailedOutcome = { kind: 'failed', errorCode, ...answer };
  const retryAfter = headers['retry-after'];
  const retryAfterSeconds = parseRetryAfter(typeof retryAfter === 'string' ? retryAfter : undefined, nowMs);
  return retryAfterSeconds === undefined ? failed : { ...failed, retryAfterSeconds };
}
