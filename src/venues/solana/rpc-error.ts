import { scrubText } from '../../domain/values/text.ts';
import { VenueError } from '../errors.ts';
import { SOLANA } from './hosts.ts';

/** The transaction has a version above the requested one. */
export const UNSUPPORTED_VERSION = -32015;
/** Block not available (yet), slot skipped or not kept, status not available yet: the transaction is unavailable now. */
export const NOT_AVAILABLE: ReadonlySet<number> = new Set([-32004, -32007, -32009, -32014]);
/** The node does not serve this method at all. */
export const METHOD_NOT_FOUND = -32601;
/** The node is behind or unhealthy, or behind `minContextSlot`. Several providers also use -32005 for rate limits. */
const BEHIND: ReadonlySet<number> = new Set([-32005, -32016]);
/** The codes of providers for rate limits. */
const LIMITED: ReadonlySet<number> = new Set([-32429, 429]);
/** Texts of rate limits that providers send with codes of their own. */
const TOO_OFTEN = /rate.?limit|too many|request limit|limit reached|limit exceeded|capacity|throttl|quota/i;
/** `retry in 10s`, `try again in 900ms`, `retry after 2 seconds`. */
const RETRY_IN = /(?:retry|again) (?:in|after) (\d{1,6}(?:\.\d{1,3})?) ?(ms|milliseconds?|s|sec|seconds?)\b/i;
const PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** The status, and the code inside an answer of status 200, with which a node refuses a client. */
export const FORBIDDEN = 403;
const MAX_MESSAGE = 200;

/** An error that a node reports in an answer of status 200. */
export class RpcError extends VenueError {
  readonly rpcCode: number;

  constructor(rpcCode: number, text: string) {
    const message = `JSON-RPC ${rpcCode}: ${scrubText(text.slice(0, MAX_MESSAGE))}`;
    const isLimited = LIMITED.has(rpcCode) || TOO_OFTEN.test(text);
    if (isLimited || BEHIND.has(rpcCode)) {
      super(SOLANA, 'rate_limited', message, { retryable: true, retryAfterMs: pauseIn(text), keepsRate: !isLimited });
    } else {
      const isForbidden = rpcCode === FORBIDDEN;
      super(SOLANA, 'http_status', message, {
        retryable: rpcCode === -32603,
        ...(isForbidden && { statusCode: FORBIDDEN }),
      });
    }
    this.rpcCode = rpcCode;
  }
}

/** The pause in the text of a rate limit, milliseconds. */
function pauseIn(text: string): number {
  const [, amount, unit = ''] = RETRY_IN.exec(text) ?? [];
  if (amount === undefined) return PAUSE_MS;
  const ms = Number(amount) * (/^m/i.test(unit) ? 1 : 1_000);
  return Math.min(MAX_PAUSE_MS, Math.max(PAUSE_MS, Math.ceil(ms)));
}

/** The failure in an answer; undefined when it has a result, `null` included. */
export function failureIn(json: unknown): VenueError | undefined {
  if (json === null || typeof json !== 'object' || Array.isArray(json)) return notRpc('not an object');
  const { error } = json as { error?: unknown };
  if (error === undefined || error === null) return 'result' in json ? undefined : notRpc('neither result nor error');
  const { code, message } = Object(error) as { code?: unknown; message?: unknown };
  if (typeof code !== 'number') return notRpc('an error without a code');
  return new RpcError(code, typeof message === 'string' ? message : 'no message');
}

function notRpc(why: string): VenueError {
  return new VenueError(SOLANA, 'invalid_payload', `not a JSON-RPC answer: ${why}`, { retryable: true });
}
