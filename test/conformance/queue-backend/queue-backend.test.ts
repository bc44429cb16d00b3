import { describe } from 'vitest';
import { BACKENDS, createTestBackend, isAvailable } from '../../support/redis/queue-backends.ts';
import { describeQueueBackend } from './conformance.ts';

describe.each(BACKENDS)('queues on %s', (kind) => {
  describe.skipIf(!isAvailable(kind))('with a store of their own', () => {
    describeQueueBackend(() => createTestBackend(kind, 20));
  });
});
