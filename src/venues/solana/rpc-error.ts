import { scrubText } from '../../domain/text.ts';
import { VenueError } from '../errors.ts';
import { SOLANA } from './hosts.ts';

/** The transaction has a version above the one that was asked for. */
export const UNSUPPORTED_VERSION = -32015;
/**
 * Block not there (yet), slot skipped or not kept, status not there yet: said of a transaction, it cannot be had now.
 */
export const NOT_AVAILABLE: ReadonlySet<number> = new Set([-32004, -32007, -32009, -32014]);
/** The node is behind or unwell, or behind `minContextSlot`. Several providers also use -32005 for callers that ask too often. */
const BEHIND: ReadonlySet<number> = new Set([-32005, -32016]);
/** The codes of providers for callers that ask too often. */
const LIMITED: ReadonlySet<number> = new Set([-32429, 429]);
/** What providers say, by codes of their own, to who asks too often. */
const TOO_OFTEN = /rate.?limit|too many|request limit|limit reached|quota/i;
const PAUSE_MS = 1_000;
const MAX_MESSAGE = 200;

/** An error that a node tells in an answer of status 200. */
export class RpcError extends VenueError {
  readonly rpcCode: number;

  constructor(rpcCode: number, text: string) {
    const message = `JSON-RPC ${rpcCode}: ${scrubText(text.slice(0, MAX_MESSAGE))}`;
    const isLimited = LIMITED.has(rpcCode) || TOO_OFTEN.test(text);
    if (isLimited || BEHIND.has(rpcCode)) {
      super(SOLANA, 'rate_limited', message, { retryable: true, retryAfterMs: PAUSE_MS, keepsRate: !isLimited });
    } else {
      super(SOLANA, 'http_status', message, { retryable: rpcCode === -32603 });
    }
    this.rpcCode = rpcCode;
  }
}

/** What an answer says of a failure; undefined when it holds a result, `null` included. */
export function failureIn(json: unknown): VenueError | undefined {
  if (json === null || typeof json !== 'object' || Array.isArray(json)) return notRpc('not an object');
  const { error } = json as { error?: unknown };
  if (error === undefined || error === null) return 'result' in json ? undefined : notRpc('neither result nor error');
  const { code, message } = Object(error) as { code?: unknown; message?: unknown };
  if (typeof code !== 'number') return notRpc('an error without a code');
  return new RpcError(code, typeof message === 'string' ? message : 'no message');
}

function notRpc(why: string): VenueError {
  return new VenueError(SOLANA, 'invalid_payload', `no JSON-RPC answer: ${why}`, { retryable: true });
}
