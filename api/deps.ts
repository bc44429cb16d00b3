import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { DecimalFormat } from '../src/domain/values/api-json.ts';
import type { Scope } from '../src/domain/values/api-key.ts';
import type { CursorCodec } from '../src/domain/values/cursor.ts';
import type { Cidr } from '../src/domain/webhooks/address-policy.ts';
import type { Logger } from '../src/observe/logger.ts';
import type { Dependency } from '../src/observe/probe-server.ts';
import type { Producer } from '../src/queues/producer.ts';
import type { QuotaDefaults } from '../src/store/accounts/quotas.ts';
import type { Arrivals } from '../src/store/catalog/arrivals.ts';
import type { Database } from '../src/store/db/tx.ts';
import type { SecretBox } from '../src/webhooks/secret-box.ts';
import type { AccountLimits } from './access/account-limits.ts';
import type { FailedKeys } from './access/failed-keys.ts';
import type { KeyDirectory } from './access/key-directory.ts';
import type { LiveSession, OpsPasswords } from './ops/operator.ts';
import type { LatestCache } from './reads/latest-cache.ts';
import type { ReadTracker } from './reads/read-tracker.ts';
import type { EnabledVenue } from './reads/venue-catalog.ts';

/** The account and key of a request. */
export interface Caller {
  accountId: bigint;
  keyId: string;
  scopes: readonly string[];
  /** The account's own limit; null: the configuration's. */
  coldReadsPerMinute: number | null;
}

/** The state that middleware passes on. */
export interface ApiState {
  requestId: string;
  log: Logger;
  /** Set by `authenticate`. */
  caller?: Caller;
  /** Set by the guard of the operator pages. */
  ops?: LiveSession;
}

export type ApiContext = RouterContext<ApiState>;
export type ApiRouter = Router<ApiState>;

/** One answered request, for metrics. `route` is the pattern, never the path. */
export interface RequestSample {
  method: string;
  route: string;
  status: number;
  durationSeconds: number;
}

/** The operator pages; absent means that they are off. */
export interface OpsOptions {
  /** At least one; see operator.ts. */
  passwords: OpsPasswords;
  /** The key of password fingerprints, at least 32 bytes. */
  sessionKey: Uint8Array;
  /** Where browsers reach them, without a slash at the end; absent: plain http at the requested address. */
  publicUrl?: string;
  /** Proxies of ours, whose word for where a request comes from is taken; none when absent. */
  trustedProxies?: readonly Cidr[];
  /** The queues to show. */
  queueNames: readonly string[];
}

/** Everything the app needs; it opens and closes none of it. */
export interface ApiDeps {
  db: Database;
  /** Used for wake-ups only. */
  producer: Pick<Producer, 'wake' | 'wakeDeliveries' | 'wakeStage' | 'queue'>;
  /** Announces the results of jobs that were enqueued for a client. */
  arrivals: Pick<Arrivals, 'waitFor'>;
  /** How long a request waits for the result of a job, milliseconds. */
  coldWaitMs: number;
  /** Is told which markets clients read. */
  reads: Pick<ReadTracker, 'note'>;
  keys: KeyDirectory;
  /** Limits networks that try too many keys. */
  failedKeys: FailedKeys;
  /** The limits of accounts per minute. */
  limits: Pick<AccountLimits, 'take'>;
  /** Origins whose pages may call us from a browser; `*` is all of them. */
  corsOrigins: readonly string[];
  secretBox: SecretBox;
  cursors: CursorCodec;
  /** Answers of the last second. */
  latest: LatestCache;
  /** The adapters that run, in the order in which they answer for `all`. */
  venues: readonly EnabledVenue[];
  decimalFormat: DecimalFormat;
  /** Trades older than this, milliseconds, are neither accepted nor kept. */
  tradeRetentionMs: number;
  webhookAllow: readonly Cidr[];
  /** The quotas of an account without quotas of its own. */
  quotas: QuotaDefaults;
  /** The checks of `/health/ready`. */
  dependencies: readonly Dependency[];
  ops?: OpsOptions;
  log: Logger;
  onRequest?: (sample: RequestSample) => void;
  /** Epoch milliseconds. */
  now(): number;
}

/** How a group of routes is entered (spec section 5). */
export interface RouteGroup {
  header: 'Authorization' | 'X-API-Key';
  scope: Scope;
}
