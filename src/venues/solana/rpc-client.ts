import { VenueError } from '../errors.ts';
import { type BatchRequest, createVenueHttp } from '../http/http.ts';
import { createMemberBatches, type MemberBatches } from '../http/member-batches.ts';
import type { VenueObserver } from '../observer.ts';
import { SOLANA, type SolanaHttpSettings } from './hosts.ts';
import { FORBIDDEN, failureIn } from './rpc-error.ts';

/** The two token programs; each token of an owner belongs to one of them. */
export const TOKEN_PROGRAMS = [
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
] as const;

interface SignaturesQuery {
  limit: number;
  /** Only transactions before this signature. */
  before?: string;
  /** A node that has not reached this slot must refuse. */
  minContextSlot: number;
}

/** A value and the slot of its read. */
interface AtSlot {
  slot: number;
  value: unknown;
}

/**
 * The reads of a Solana node, all at `finalized`. It sends no batches: providers count each call of a batch, and several refuse them. Every
 * call throws VenueError only, `RpcError` for refusals of the node itself.
 */
export interface RpcClient {
  /** Signatures of transactions that name this account, newest first. */
  listSignatures(account: string, query: SignaturesQuery, signal: AbortSignal): Promise<unknown[]>;
  /** Null while the node does not have it. A transaction above `maxVersion` is an `RpcError` UNSUPPORTED_VERSION. */
  getTransaction(signature: string, maxVersion: number, signal: AbortSignal, batch?: BatchRequest): Promise<unknown>;
  /** The requests for transactions, of all wallets. */
  readonly transactions: MemberBatches;
  /** Lamports. */
  getBalance(owner: string, signal: AbortSignal): Promise<AtSlot>;
  /** The owner's accounts in one of the token programs. */
  listTokenAccounts(owner: string, programId: string, signal: AbortSignal): Promise<AtSlot>;
  close(): Promise<void>;
}

/** The public endpoint allows 40 calls of one method in 10 seconds. */
export const PER_SECOND = 4;
const COMMITMENT = { commitment: 'finalized' } as const;
/** Pause after a node blocks this client: each further request may prolong the block. */
const BLOCKED_PAUSE_MS = 60_000;

/** `url` may contain a key, in its path or its query; errors, logs and metrics do not contain it. */
export function createRpcClient(options: {
  url: string;
  http?: SolanaHttpSettings;
  observer?: VenueObserver;
  /** Milliseconds without requests after a 403. */
  blockedPauseMs?: number;
}): RpcClient {
  const url = new URL(options.url);
  const http = createVenueHttp({
    venue: SOLANA,
    baseUrl: options.url,
    requestsPerSecond: PER_SECOND,
    budget: 'rpc',
    failureIn,
    ...options.http,
    ...(options.observer && { observer: options.observer }),
  });
  const path = url.pathname === '/' ? '/' : '';
  let blockedUntilMs = 0;
  async function call(
    method: string,
    params: readonly unknown[],
    signal: AbortSignal,
    batch?: BatchRequest,
  ): Promise<unknown> {
    const leftMs = Math.ceil(blockedUntilMs - performance.now());
    if (leftMs > 0) throw blocked(leftMs);
    const body = { jsonrpc: '2.0', id: 1, method, params };
    try {
      const answer = await http.postJson({ route: method, path, query: url.searchParams, body, signal, batch });
      return (answer as { result: unknown }).result;
    } catch (error) {
      if (!(error instanceof VenueError) || error.statusCode !== FORBIDDEN) throw error;
      const pauseMs = Math.max(options.blockedPauseMs ?? BLOCKED_PAUSE_MS, error.retryAfterMs ?? 0);
      blockedUntilMs = performance.now() + pauseMs;
      throw blocked(pauseMs, error);
    }
  }
  return {
    async listSignatures(account, query, signal) {
      const rows = await call('getSignaturesForAddress', [account, { ...COMMITMENT, ...query }], signal);
      return Array.isArray(rows) ? rows : refuse('getSignaturesForAddress: expected a list');
    },
    getTransaction(signature, maxVersion, signal, batch) {
      const config = { ...COMMITMENT, encoding: 'jsonParsed', maxSupportedTransactionVersion: maxVersion };
      return call('getTransaction', [signature, config], signal, batch);
    },
    transactions: createMemberBatches({ ...http, venue: SOLANA, route: 'getTransaction', observer: options.observer }),
    async getBalance(owner, signal) {
      return readAtSlot('getBalance', await call('getBalance', [owner, COMMITMENT], signal));
    },
    async listTokenAccounts(owner, programId, signal) {
      const config = { ...COMMITMENT, encoding: 'jsonParsed' };
      return readAtSlot(
        'getTokenAccountsByOwner',
        await call('getTokenAccountsByOwner', [owner, { programId }, config], signal),
      );
    },
    close: () => http.close(),
  };
}

function readAtSlot(method: string, result: unknown): AtSlot {
  const { context, value } = Object(result) as { context?: { slot?: unknown } | null; value?: unknown };
  const slot = context?.slot;
  if (!Number.isSafeInteger(slot) || value === undefined) return refuse(`${method}: expected context.slot and value`);
  return { slot: slot as number, value };
}

/** The node refuses every request of this client: its address is blocked, or its key is not valid. */
function blocked(retryAfterMs: number, cause?: VenueError): VenueError {
  const message = `the node refuses this client (HTTP ${FORBIDDEN}): its address is blocked or its key is not valid`;
  return new VenueError(SOLANA, 'http_status', message, {
    retryable: false,
    statusCode: FORBIDDEN,
    retryAfterMs,
    ...(cause && { cause }),
  });
}

function refuse(message: string): never {
  throw new VenueError(SOLANA, 'invalid_payload', message, { retryable: true });
}
