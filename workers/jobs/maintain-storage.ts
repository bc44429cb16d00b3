import { DAY_MS } from '../../src/domain/values/durations.ts';
import { pruneIdempotencyKeys } from '../../src/store/accounts/idempotency.ts';
import { reconcileEvents } from '../../src/store/catalog/market-events.ts';
import { pruneReads } from '../../src/store/catalog/market-heat.ts';
import { pruneQuarantine } from '../../src/store/catalog/quarantine.ts';
import type { PartitionedTable } from '../../src/store/db/partitions.ts';
import { pruneEvents } from '../../src/store/deliveries/retention.ts';
import { forgetOldSecrets } from '../../src/store/deliveries/subscriptions.ts';
import { pruneActions } from '../../src/store/ops/actions.ts';
import { retirePartitions } from '../../src/store/series/retention.ts';
import { defineJob } from '../process/define.ts';

/**
 * Makes the partitions of the next days, drops partitions past their retention, and prunes rows by age or number. Candles and
 * snapshots have no retention. The next run continues where this one stops.
 */
export const maintainStorage = defineJob('maintain-storage', async (_data, context) => {
  const { db, partitions, config, now, signal, log } = context;
  for (const table of ['observation', 'price_history', 'book_history'] as const)
    await partitions.ensureAroundNow(table);
  await partitions.ensure('trade', [now(), now() + DAY_MS]);

  const quarantinePruned = await pruneQuarantine(db);
  const readsPruned = await pruneReads(db);
  const eventsReconciled = await reconcileEvents(db, signal);

  const { observationsDays, bookHistoryDays, priceHistoryDays, tradesDays } = config.retention;
  const retentionDays: readonly (readonly [PartitionedTable, number])[] = [
    ['observation', observationsDays],
    ['book_history', bookHistoryDays],
    ['price_history', priceHistoryDays],
    ['trade', tradesDays],
  ];
  const report = { dropped: 0, carried: 0, postponed: 0, quarantinePruned, readsPruned, eventsReconciled };
  for (const [table, days] of retentionDays) {
    const retired = await retirePartitions({ db, partitions, table, beforeMs: now() - days * DAY_MS, signal });
    const { dropped, carried, postponed } = retired;
    if (dropped.length > 0 || postponed.length > 0) log.info({ table, dropped, carried, postponed }, 'retention');
    report.dropped += dropped.length;
    report.carried += carried;
    report.postponed += postponed.length;
  }

  const { attemptsDays, eventsDays, opsActionsDays } = config.retention;
  const attemptsBeforeMs = now() - attemptsDays * DAY_MS;
  const pruned = await pruneEvents({ db, attemptsBeforeMs, eventsBeforeMs: now() - eventsDays * DAY_MS, signal });
  const idempotencyKeysPruned = await pruneIdempotencyKeys(db, signal);
  const actionsPruned = await pruneActions(db, now() - opsActionsDays * DAY_MS, signal);
  const secretsForgotten = await forgetOldSecrets(db);
  return { ...report, ...pruned, idempotencyKeysPruned, actionsPruned, secretsForgotten };
});
