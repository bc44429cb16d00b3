import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { DecimalFormat } from '../src/domain/values/api-json.ts';
import type { Scope } from '../src/domain/values/api-key.ts';
import type { CursorCodec } from '../src/domain/values/cursor.ts';
import type { AddressRules, Cidr } from '../src/domain/webhooks/address-policy.ts';
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
import type { ErrorDetail } from './errors.ts';
import type { ConsoleSession, OperatorSession } from './pages/kit/session.ts';
import type { OpsPasswords } from './pages/ops/access/credentials.ts';
import type { AnswerCache } from './reads/answer-cache.ts';
import type { MarketMemory } from './reads/market-memory.ts';
import type { ReadTracker } from './reads/read-tracker.ts';
import type { EnabledVenue } from './reads/venue-catalog.ts';
import type { OpenStreams } from './streams/port.ts';

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
  /** Set by the guard of the operator pages. */
  ops?: OperatorSession;
  /** Set by the guard of the console. */
  console?: ConsoleSession;
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
  /** The logins of the configuration; the others are stored (see credentials.ts). */
  passwords: OpsPasswords;
  /** The key of password fingerprints, at least 32 bytes. */
  sessionKey: Uint8Array;
  /** A guess at a password that is not stored is compared with this stored form, for its cost. */
  noPassword: string;
  /** The address of the pages for browsers, without a trailing slash. Absent: plain http at the requested address. */
  publicUrl?: string;
  /** The host names of the pages; see `opsHosts`. */
  hosts?: readonly string[];
  /** The operator's proxies: only their `X-Forwarded-For` counts. Default: no proxies. */
  trustedProxies?: readonly Cidr[];
  /** The queues to show. */
  queueNames: readonly string[];
}

/** The console at `/`; absent means that it is off. */
export interface ConsoleOptions {
  /** The one market that visitors without a key may read. Absent: they read nothing. */
  publicMarket?: { venue: string; marketId: string };
  /** The operator's proxies: only their `X-Forwarded-For` counts. Default: no proxies. */
  trustedProxies?: readonly Cidr[];
}

/** The dependencies of the app. The app neither opens nor closes them. */
export interface ApiDeps {
  db: Database;
  /** Used for wake-ups only. */
  producer: Pick<Producer, 'wake' | 'wakeDeliveries' | 'wakeStage' | 'queue'>;
  /** Announces the results of jobs that were enqueued for a client. */
  arrivals: Pick<Arrivals, 'waitFor'>;
  /** How long a request waits for the result of a job, milliseconds. */
  coldWaitMs: number;
  /** Records the markets that clients read. */
  reads: Pick<ReadTracker, 'note'>;
  /** The open streams of this process. */
  streams: OpenStreams;
  keys: KeyDirectory;
  /** Limits the wrong keys of a network. */
  failedKeys: FailedKeys;
  /** The limits of accounts and of failures per minute. */
  limits: Pick<AccountLimits, 'take' | 'look' | 'takeFailure'>;
  /** Origins whose pages may call the API from a browser; `*` means all. */
  corsOrigins: readonly string[];
  secretBox: SecretBox;
  cursors: CursorCodec;
  /** Prepared answers of market routes. */
  answers: AnswerCache;
  /** Markets and quotes in memory; absent: each read takes an answer that is kept, or the database. */
  memory?: MarketMemory;
  /** The enabled adapters, in the order of their answers for `all`. */
  venues: readonly EnabledVenue[];
  decimalFormat: DecimalFormat;
  /** Milliseconds. Older trades are neither accepted nor kept. */
  tradeRetentionMs: number;
  addressRules: AddressRules;
  /** The quotas of an account without quotas of its own. */
  quotas: QuotaDefaults;
  /** The checks of `/health/ready`. */
  dependencies: readonly Dependency[];
  ops?: OpsOptions;
  console?: ConsoleOptions;
  log: Logger;
  onRequest?: (sample: RequestSample) => void;
  /** Epoch milliseconds. */
  now(): number;
}

/** The authentication of a group of routes (specification section 5). */
export interface RouteGroup {
  header: 'Authorization' | 'X-API-Key';
  scope: Scope;
}
