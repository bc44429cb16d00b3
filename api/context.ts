import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { Scope } from '../src/domain/values/api-key.ts';
import type { Logger } from '../src/observe/logger.ts';
import type { ErrorDetail } from './errors.ts';

/** The account and key of a request. */
export interface Caller {
  accountId: bigint;
  keyId: string;
  scopes: readonly string[];
  /** The account's own limit; null: the limit of the configuration. */
  coldReadsPerMinute: number | null;
}

/** The state that middleware passes on. */
export interface ApiState {
  requestId: string;
  log: Logger;
  /** Set by `authenticate`. */
  caller?: Caller;
  /** The ignored parameters of the request, for `meta.warnings`; see http/parameter-names.ts. */
  warnings?: readonly ErrorDetail[];
  /** Set by the guard of the operator pages or of the console, which know its type. */
  session?: object;
}

export type ApiContext = RouterContext<ApiState>;
export type ApiRouter = Router<ApiState>;

/** The authentication of a group of routes (specification section 5). */
export interface RouteGroup {
  header: 'Authorization' | 'X-API-Key';
  scope: Scope;
}

/**
 * The caller of the one market that everyone may read, without a key. Numbers of accounts begin at 1, so no account gets its counts. It
 * causes no cold read.
 */
export const VISITOR = { accountId: 0n, keyId: '', scopes: ['markets:read'], coldReadsPerMinute: 0 };

export function isVisitor({ accountId }: { accountId: bigint }): boolean {
  return accountId === VISITOR.accountId;
}
