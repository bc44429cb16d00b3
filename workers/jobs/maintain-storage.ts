import type { ArchiveKind } from '../../src/domain/archive/kinds.ts';
import { DAY_MS } from '../../src/domain/values/durations.ts';
import { pruneEndedKeys } from '../../src/store/accounts/accounts.ts';
import { pruneIdempotencyKeys } from '../../src/store/accounts/idempotency.ts';
import { pruneRateUsage } from '../../src/store/accounts/rate-usage.ts';
import { pruneSignInLinks } from '../../src/store/accounts/sign-in-links.ts';
import { pruneBacktests } from '../../src/store/alerts/backtest/jobs.ts';
import { pruneFinishedAlerts, pruneFirings } from '../../src/store/alerts/retention.ts';
import { isPartitionArchived, isPartitionUnchanged, setKeepDays } from '../../src/store/archive/catalog.ts';
import { reconcileEvents } from '../../src/store/catalog/market-events.ts';
import { pruneReads } from '../../src/store/catalog/market-heat.ts';
import { pruneQuarantine } from '../../src/store/catalog/quarantine.ts';
import { pruneUnusedTokens } from '../../src/store/catalog/tokens.ts';
import { pruneSamples } from '../../src/store/catalog/volume-samples.ts';
import { pruneCoverageEvidence } from '../../src/store/coverage/totals.ts';
import { moveCandleSeam, moveSeam, type Partition, type PartitionedTable } from '../../src/store/db/partitions.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import { pruneEvents, pruneSubscriptions } from '../../src/store/deliveries/retention.ts';
import { forgetOldSecrets } from '../../src/store/deliveries/subscriptions.ts';
import { endGapsWithoutFeed, GAPS_KEPT_DAYS, pruneGaps } from '../../src/store/feeds/gaps.ts';
import { pruneActions } from '../../src/store/ops/actions.ts';
import { retirePartitions } from '../../src/store/series/retention.ts';
import { pruneWitness } from '../../src/store/series/trade-witness.ts';
import { pruneWallets } from '../../src/store/wallets/wallets.ts';
import { archivedKinds, planArchive } from '../process/archiving.ts';
import { defineJob } from '../process/define.ts';

/** Longer than any window of usage, and than the difference of clocks: API processes use their own. */
const USAGE_KEPT_MS = 600_000;
/** Postgres keeps finer candles for so long: coverage judges the hours of 35 days, with totals of 40 days. */
const FINER_CANDLES_DAYS = 45;

/**
 * Makes the partitions of the next days, drops partitions past their retention, and prunes rows by age or number. Snapshots
 * have no retention. The next run continues where this one stops.
 */
export const maintainStorage = defineJob('maintain-storage', async (_data, context) => {
  const { db, partitions, config, now, signal, log } = context;
  const archived = archivedKinds(config);
  await setKeepDays(db, 'trades', archived.includes('trades') ? (config.archive.keepDays ?? null) : null);
  for (const table of ['observation', 'price_history', 'book_history'] as const)
    await partitions.ensureAroundNow(table);
  await partitions.ensure('trade', [now(), now() + DAY_MS]);

  const quarantinePruned = await pruneQuarantine(db);
  const readsPruned = await pruneReads(db);
  const samplesPruned = await pruneSamples(db);
  const witnessPruned = await pruneWitness(db);
  const coveragePruned = await pruneCoverageEvidence(db);
  const usagePruned = await pruneRateUsage(db, now() - USAGE_KEPT_MS);
  const eventsReconciled = await reconcileEvents(db, signal);

  const { observationsDays, bookHistoryDays, priceHistoryDays, tradesDays } = config.retention;
  const retentionDays: readonly (readonly [PartitionedTable, number, ArchiveKind?])[] = [
    ['observation', observationsDays],
    ['book_history', bookHistoryDays, 'books'],
    ['price_history', priceHistoryDays, 'prices'],
    ['trade', tradesDays, 'trades'],
  ];
  const counts = {
    quarantinePruned,
    readsPruned,
    samplesPruned,
    witnessPruned,
    coveragePruned,
    usagePruned,
    eventsReconciled,
  };
  const report = { dropped: 0, carried: 0, postponed: 0, ...counts };
  for (const [table, days, kind] of retentionDays) {
    const isArchived = kind !== undefined && archived.includes(kind);
    const archive = isArchived && {
      archive: {
        has: (tx: Queryable, partition: Partition) => isPartitionArchived(tx, kind, partition),
        isUnchanged: (tx: Queryable, partition: Partition) => isPartitionUnchanged(tx, kind, partition),
        moveSeam: (tx: Queryable, untilMs: number) => moveSeam(tx, kind, untilMs),
      },
    };
    // Backtests read the history of prices in Postgres.
    const keptDays = isArchived && kind !== 'prices' ? Math.min(days, config.archive.keepDays ?? days) : days;
    const beforeMs = now() - keptDays * DAY_MS;
    const retired = await retirePartitions({ db, partitions, table, beforeMs, signal, ...archive });
    const { dropped, carried, postponed } = retired;
    if (dropped.length > 0 || postponed.length > 0) log.info({ table, dropped, carried, postponed }, 'retention');
    report.dropped += dropped.length;
    report.carried += carried;
    report.postponed += postponed.length;
  }

  const { keepDays } = config.archive;
  if (keepDays !== undefined && archived.includes('candles')) {
    await moveCandleSeam(db, now() - Math.max(keepDays, FINER_CANDLES_DAYS) * DAY_MS);
  }

  const { attemptsDays, eventsDays, opsActionsDays } = config.retention;
  const attemptsBeforeMs = now() - attemptsDays * DAY_MS;
  const yesterdayMs = now() - DAY_MS;
  const eventsBeforeMs = now() - eventsDays * DAY_MS;
  const pruned = await pruneEvents({ db, attemptsBeforeMs, eventsBeforeMs, testsBeforeMs: yesterdayMs, signal });
  const alertsPruned = await pruneFinishedAlerts(db, { signal });
  const firingsPruned = await pruneFirings(db, eventsBeforeMs, signal);
  const backtestsPruned = await pruneBacktests(db);
  // After events and alerts, which name webhooks and tokens. A day later no transaction uses them.
  const subscriptionsPruned = await pruneSubscriptions(db, yesterdayMs, signal);
  const walletsPruned = await pruneWallets(db, yesterdayMs, signal);
  const tokensPruned = await pruneUnusedTokens(db, yesterdayMs, signal);
  const idempotencyKeysPruned = await pruneIdempotencyKeys(db, signal);
  const linksPruned = await pruneSignInLinks(db, now());
  const keysPruned = await pruneEndedKeys(db, yesterdayMs, { signal });
  const actionsPruned = await pruneActions(db, now() - opsActionsDays * DAY_MS, signal);
  await endGapsWithoutFeed(db);
  const gapsPruned = await pruneGaps(db, now() - GAPS_KEPT_DAYS * DAY_MS, signal);
  const secretsForgotten = await forgetOldSecrets(db);
  const { woken: archiveDaysWoken, removed: archiveFilesRemoved } = await planArchive(context);
  return {
    ...report,
    ...pruned,
    alertsPruned,
    firingsPruned,
    backtestsPruned,
    subscriptionsPruned,
    walletsPruned,
    tokensPruned,
    idempotencyKeysPruned,
    linksPruned,
    keysPruned,
    actionsPruned,
    gapsPruned,
    secretsForgotten,
    archiveDaysWoken,
    archiveFilesRemoved,
  };
});
