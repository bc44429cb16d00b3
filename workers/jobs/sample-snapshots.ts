import { currentMinute, sampleSnapshots } from '../../src/store/series/snapshots.ts';
import { defineJob } from '../process/define.ts';
import { runStage } from '../process/staging.ts';

const CLAIM_LIMIT = 20_000;

/** Samples price history into snapshots of the past minutes. */
export const sampleSnapshotsJob = defineJob('sample-snapshots', async (_data, context) =>
  runStage(context, {
    stage: 'sample-snapshots',
    claim: { limit: CLAIM_LIMIT, order: 'oldest', minuteBefore: await currentMinute(context.db) },
    work: sampleSnapshots,
  }),
);
