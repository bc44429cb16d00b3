import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { Cidr } from '../src/domain/address-policy.ts';
import type { DecimalFormat } from '../src/domain/api-json.ts';
import type { Scope } from '../src/domain/api-key.ts';
import type { CursorCodec } from '../src/domain/cursor.ts';
import type { Logger } from '../src/observe/logger.ts';
import type { Dependency } from '../src/observe/probe-server.ts';
import type { Producer } from '../src/queues/producer.ts';
import type { Arrivals } from '../src/store/arrivals.ts';
import type { Database } from '../src/store/tx.ts';
import type { SecretBox } from '../src/webhooks/secret-box.ts';
import type { KeyDirectory } from './key-directory.ts';
import type { LatestCache } from './latest-cache.ts';
import type { ReadTracker } from './read-tracker.ts';
import type { EnabledVenue } from './venue-catalog.ts';

/** Who asks. */
export interface Caller {
  accountId: bigint;
  keyId: string;
  scopes: readonly string[];
}

/** What middleware hands on. */
export interface ApiState {
  requestId: string;
  log: Logger;
  /** Set by `authenticate`. */
  caller?: Caller;
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

/** The operator's queue dashboard; absent: there is none. */
export interface OpsOptions {
  password: string;
  /** The queues to show. */
  queueNames: readonly string[];
}

/** Everything the app needs; it opens and closes none of it. */
export interface ApiDeps {
  db: Database;
  /** Used for wake-ups only. */
  producer: Pick<Producer, 'wake' | 'wakeDeliveries' | 'wakeStage' | 'queue'>;
  /** Hears what jobs that were enqueued for a client have brought. */
  arrivals: Pick<Arrivals, 'waitFor'>;
  /** How long a request waits for what a job fetches, milliseconds. */
  coldWaitMs: number;
  /** Is told which markets clients read. */
  reads: Pick<ReadTracker, 'note'>;
  keys: KeyDirectory;
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
  /** What `/health/ready` asks. */
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
