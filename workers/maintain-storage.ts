import { dropPartitionsBefore } from '../src/store/partitions.ts';
import { defineJob } from './define.ts';

const DAY_MS = 86_400_000;
/** Observations are the evidence for alerts that fired: a week is long enough to answer "why". */
const OBSERVATION_DAYS = 7;

/** Makes the partitions of the days to come and drops those past their retention. */
export const maintainStorage = defineJob('maintain-storage', async (_data, { db, partitions, config, now }) => {
  await partitions.ensureAroundNow('observation');
  await partitions.ensureAroundNow('price_history');
  await partitions.ensure('trade', [now(), now() + DAY_MS]);
  const dropped = [
    ...(await dropPartitionsBefore(db, 'observation', now() - OBSERVATION_DAYS * DAY_MS)),
    ...(await dropPartitionsBefore(db, 'trade', now() - config.retention.tradesDays * DAY_MS)),
  ];
  return { dropped: dropped.length };
});
