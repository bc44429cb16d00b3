import { parseSecretsKeys } from '../../../src/domain/values/secret-keys.ts';
import { createMetrics, type Metrics } from '../../../src/observe/metrics.ts';
import { concurrencyOf } from '../../../src/queues/jobs.ts';
import { createProducer, type Producer } from '../../../src/queues/producer.ts';
import type { Database } from '../../../src/store/db/tx.ts';
import { createSecretBox } from '../../../src/webhooks/secret-box.ts';
import type { Sender } from '../../../src/webhooks/sender.ts';
import { deliverDue } from '../../../workers/jobs/deliver-due.ts';
import { deliverWebhook } from '../../../workers/jobs/deliver-webhook.ts';
import { createProcessor } from '../../../workers/process/define.ts';
import { aSubscription } from '../../factories/alerts.ts';
import { aDelivery } from '../../factories/deliveries.ts';
import type { TestDatabase } from '../../support/postgres/database.ts';
import { createTestBackend } from '../../support/redis/queue-backends.ts';
import { capturedLog, jobContext, RING, testConfig, UNUSED_URL } from '../workers/worker-harness.ts';
import { SECRET } from './deliveries.ts';

const BOX = createSecretBox(parseSecretsKeys(RING));

/** Stores a webhook with due deliveries; returns its key. */
export async function aDueWebhook(db: Database, accountId: bigint, url: string, deliveries: number): Promise<bigint> {
  const id = `wh_${crypto.randomUUID()}`;
  const subscriptionPk = await aSubscription(db, { accountId, id, url, sealedSecret: BOX.seal(SECRET, id) });
  for (let count = 0; count < deliveries; count += 1) await aDelivery(db, { accountId, subscriptionPk });
  return subscriptionPk;
}

interface RunningDeliverer {
  producer: Producer;
  metrics: Metrics;
  /** Tells the jobs to stop, as the process does first. */
  stopping: AbortController;
  close(): Promise<void>;
}

/** The jobs of a deliverer on queues in Postgres. They send with `sender`, which stays open. */
export async function runDeliverer(test: Pick<TestDatabase, 'db'>, sender: Sender): Promise<RunningDeliverer> {
  const queues = await createTestBackend('postgres', 2);
  const producer = createProducer({ backend: queues.backend, log: capturedLog().log });
  const metrics = createMetrics('test', { ofNode: false });
  const stopping = new AbortController();
  const config = testConfig(UNUSED_URL);
  const deps = jobContext({ db: test.db, config, sender, producer, metrics, stopping: stopping.signal });
  const processor = createProcessor([deliverWebhook, deliverDue], deps);
  const worker = queues.backend.worker('deliveries', processor, concurrencyOf('deliveries'));
  worker.on('error', () => undefined);
  worker.run().catch(() => undefined);
  return {
    producer,
    metrics,
    stopping,
    async close() {
      await worker.close();
      await producer.close();
      await queues.close();
    },
  };
}
