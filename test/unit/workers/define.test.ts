import type { Job } from 'bullmq';
import { expect, it } from 'vitest';
import { createProcessor } from '../../../workers/process/define.ts';

it('createProcessor skips a job without a name when Redis was emptied after its hand-out', async () => {
  const processor = createProcessor([], {} as Parameters<typeof createProcessor>[1]);
  expect(await processor({ id: '7' } as Job)).toEqual({ skipped: 'deleted from the queue store' });
});
