import pg, { type Pool } from 'pg';
import { DataSource } from 'typeorm';
import { KEEP_ALIVE_DELAY_MS } from '../../config/pools.ts';
import type { Logger } from '../../observe/logger.ts';
import { closeUnresponsive } from '../../observe/silent-connections.ts';
import { findBusySessions } from './busy-sessions.ts';
import { AccountEntity } from './entities/account.ts';
import { AlertEntity } from './entities/alert.ts';
import { ApiKeyEntity } from './entities/api-key.ts';
import { ConsoleSessionEntity } from './entities/console-session.ts';
import { OpsSessionEntity } from './entities/ops-session.ts';
import { WalletEntity } from './entities/wallet.ts';
import { WebhookSubscriptionEntity } from './entities/webhook-subscription.ts';
import { Initial0001 } from './migrations/0001-initial.ts';
import { MarketHistory0002 } from './migrations/0002-market-history.ts';
import { Wallets0003 } from './migrations/0003-wallets.ts';
import { DeliveryClaims0004 } from './migrations/0004-delivery-claims.ts';
import { AccountWrites0005 } from './migrations/0005-account-writes.ts';
import { RateUsage0006 } from './migrations/0006-rate-usage.ts';
import { OperatorPages0007 } from './migrations/0007-operator-pages.ts';
import { TradeOrder0008 } from './migrations/0008-trade-order.ts';
import { Events0009 } from './migrations/0009-events.ts';
import { HostBudget0010 } from './migrations/0010-host-budget.ts';
import { PriceCheck0011 } from './migrations/0011-price-check.ts';
import { TradeWitness0012 } from './migrations/0012-trade-witness.ts';
import { KeyRotation0013 } from './migrations/0013-key-rotation.ts';
import { Operators0014 } from './migrations/0014-operators.ts';
import { EventTarget0015 } from './migrations/0015-event-target.ts';
import { AuditTrail0016 } from './migrations/0016-audit-trail.ts';
import { PartitionFunctions0017 } from './migrations/0017-partition-functions.ts';
import { OnlineIndexes0018 } from './migrations/0018-online-indexes.ts';
import { Presence0019 } from './migrations/0019-presence.ts';
import { Journal0020 } from './migrations/0020-journal.ts';
import { LossProof0021 } from './migrations/0021-loss-proof.ts';
import { Feeds0022 } from './migrations/0022-feeds.ts';
import { ObservationOrder0023 } from './migrations/0023-observation-order.ts';
import { AlertRules0024 } from './migrations/0024-alert-rules.ts';
import { WebhookOptions0025 } from './migrations/0025-webhook-options.ts';
import { DeliveryOrder0026 } from './migrations/0026-delivery-order.ts';
import { Console0027 } from './migrations/0027-console.ts';
import { ProcessHeartbeats0028 } from './migrations/0028-process-heartbeats.ts';
import { AlertBacktests0029 } from './migrations/0029-alert-backtests.ts';
import { Broadcasts0030 } from './migrations/0030-broadcasts.ts';
import { AccountKeys0031 } from './migrations/0031-account-keys.ts';
import { FeedStateSince0032 } from './migrations/0032-feed-state-since.ts';
import { Corrections0034 } from './migrations/0034-corrections.ts';
import { TradeReread0035 } from './migrations/0035-trade-reread.ts';
import { LateProcesses0036 } from './migrations/0036-late-processes.ts';
import { FollowedVenues0037 } from './migrations/0037-followed-venues.ts';
import { Quiet0038 } from './migrations/0038-quiet.ts';
import { RequestedPolls0039 } from './migrations/0039-requested-polls.ts';
import { ConditionNames0040 } from './migrations/0040-condition-names.ts';
import { Resolutions0041 } from './migrations/0041-resolutions.ts';
import { MarketRules0042 } from './migrations/0042-market-rules.ts';
import { ResolutionIndexes0043 } from './migrations/0043-resolution-indexes.ts';
import { StatedTime0044 } from './migrations/0044-stated-time.ts';
import { ResultsAskedAgain0045 } from './migrations/0045-results-asked-again.ts';
import { MarketFees0046 } from './migrations/0046-market-fees.ts';
import { AlertBooks0047 } from './migrations/0047-alert-books.ts';
import { BesideFormerRelease0048 } from './migrations/0048-beside-former-release.ts';
import { Archive0049 } from './migrations/0049-archive.ts';
import { Coverage0050 } from './migrations/0050-coverage.ts';
import { ArchiveReads0051 } from './migrations/0051-archive-reads.ts';
import { ArchiveCoverage0052 } from './migrations/0052-archive-coverage.ts';
import { ArchiveState0054 } from './migrations/0054-archive-state.ts';
import { ArchiveSeam0055 } from './migrations/0055-archive-seam.ts';
import { ArchiveStore0056 } from './migrations/0056-archive-store.ts';
import { TradeWeeks0057 } from './migrations/0057-trade-weeks.ts';
import { CandleSeam0058 } from './migrations/0058-candle-seam.ts';
import { Watchlist0059 } from './migrations/0059-watchlist.ts';
import { ResponseHeaders0060 } from './migrations/0060-response-headers.ts';
import { WalletEvents0061 } from './migrations/0061-wallet-events.ts';
import { Causes0062 } from './migrations/0062-causes.ts';

/** Every table that TypeORM's repositories may access. */
const ENTITIES = [
  AccountEntity,
  ApiKeyEntity,
  WebhookSubscriptionEntity,
  AlertEntity,
  WalletEntity,
  OpsSessionEntity,
  ConsoleSessionEntity,
] as const;

/** In order. A landed migration is never edited. */
export const MIGRATIONS = [
  Initial0001,
  MarketHistory0002,
  Wallets0003,
  DeliveryClaims0004,
  AccountWrites0005,
  RateUsage0006,
  OperatorPages0007,
  TradeOrder0008,
  Events0009,
  HostBudget0010,
  PriceCheck0011,
  TradeWitness0012,
  KeyRotation0013,
  Operators0014,
  EventTarget0015,
  AuditTrail0016,
  PartitionFunctions0017,
  OnlineIndexes0018,
  Presence0019,
  Journal0020,
  LossProof0021,
  Feeds0022,
  ObservationOrder0023,
  AlertRules0024,
  WebhookOptions0025,
  DeliveryOrder0026,
  Console0027,
  ProcessHeartbeats0028,
  AlertBacktests0029,
  Broadcasts0030,
  AccountKeys0031,
  FeedStateSince0032,
  Corrections0034,
  TradeReread0035,
  LateProcesses0036,
  FollowedVenues0037,
  Quiet0038,
  RequestedPolls0039,
  ConditionNames0040,
  Resolutions0041,
  MarketRules0042,
  ResolutionIndexes0043,
  StatedTime0044,
  ResultsAskedAgain0045,
  MarketFees0046,
  AlertBooks0047,
  BesideFormerRelease0048,
  Archive0049,
  Coverage0050,
  ArchiveReads0051,
  ArchiveCoverage0052,
  ArchiveState0054,
  ArchiveSeam0055,
  ArchiveStore0056,
  TradeWeeks0057,
  CandleSeam0058,
  Watchlist0059,
  ResponseHeaders0060,
  WalletEvents0061,
  Causes0062,
] as const;

/**
 * A process that is stopped inside a transaction (SIGSTOP, a suspended machine) would hold its shard's lock without limit. After this
 * time Postgres ends its session and rolls the work back, and another process continues.
 */
const IDLE_IN_TRANSACTION_MS = 15_000;

interface DataSourceOptions {
  databaseUrl: string;
  /** The maximum number of connections in the pool. */
  poolSize: number;
  /** Shown in pg_stat_activity. */
  applicationName: string;
  /**
   * Whether `databaseUrl` leads to a pooler, which refuses connections with session settings. Then the pooler's own
   * `idle_transaction_timeout` must end idle transactions.
   */
  isPooled?: boolean;
  /** A statement that waits longer for a lock fails. Default: no limit. */
  lockTimeoutMs?: number;
  /** A connection is closed after this long without an answer when the server does not work on its statement. Default: TCP's limits. */
  silenceMs?: number;
  /** Aborts at shutdown: then connections may stay silent only for some seconds. */
  stopping?: AbortSignal;
  /** See IDLE_IN_TRANSACTION_MS; tests shorten it. */
  idleInTransactionMs?: number;
  log: Logger;
}

/** A pooler does not report the sessions that the server works for, so the limit of silence is longer there, also at shutdown. */
const PATIENCE_WITH_POOLERS = 4;

function silenceWatch(options: DataSourceOptions, silenceMs: number): (client: unknown) => void {
  const { databaseUrl, isPooled, log, stopping } = options;
  if (isPooled === true) return closeUnresponsive({ limitMs: PATIENCE_WITH_POOLERS * silenceMs, log });
  const findBusy = (pids: readonly number[]) => findBusySessions(databaseUrl, pids);
  return closeUnresponsive({ limitMs: silenceMs, log, findBusy, ...(stopping && { stopping }) });
}

/** A data source that is not connected yet. TypeORM logs nothing, because one failed bulk insert would print all its values. */
export function createDataSource(options: DataSourceOptions): DataSource {
  return new DataSource({
    type: 'postgres',
    url: options.databaseUrl,
    applicationName: options.applicationName,
    poolSize: options.poolSize,
    poolErrorHandler: (error: unknown) => options.log.warn({ err: error }, 'database connection lost'),
    connectTimeoutMS: 5_000,
    extra: {
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
      ...(options.silenceMs !== undefined && { onConnect: silenceWatch(options, options.silenceMs) }),
      idleTimeoutMillis: 60_000,
      ...(options.lockTimeoutMs !== undefined && { lock_timeout: options.lockTimeoutMs }),
      ...(options.isPooled !== true && {
        idle_in_transaction_session_timeout: options.idleInTransactionMs ?? IDLE_IN_TRANSACTION_MS,
      }),
    },
    driver: pg,
    logging: false,
    synchronize: false,
    entities: [...ENTITIES],
    migrations: [...MIGRATIONS],
    migrationsTableName: 'schema_migration',
    migrationsTransactionMode: 'each',
  });
}

/** Connections of a pool: open ones, idle ones among them, waiting callers, and the maximum. */
interface PoolUse {
  open: number;
  idle: number;
  waiting: number;
  limit: number;
}

/** The pool use of a data source; TypeORM keeps the pool on its driver. */
export function poolUse(dataSource: DataSource): PoolUse {
  const { master } = dataSource.driver as unknown as { master: Pool };
  return { open: master.totalCount, idle: master.idleCount, waiting: master.waitingCount, limit: master.options.max };
}
