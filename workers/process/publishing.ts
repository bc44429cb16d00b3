import type { Role } from '../../src/queues/jobs.ts';
import type { ProcessContext } from '../../src/runtime/process-context.ts';
import { startPublisher } from '../../src/store/journal/publisher.ts';

/** The process that hosts the publisher: it writes derived data and maintains storage already, and its own work is mostly SQL. */
const HOST: Role = 'aggregator';
/** For liveness: a look for marks takes milliseconds, and a lost session returns within seconds. */
const LOOK_MS = 5_000;

/** Starts the publisher of the journal in its host; elsewhere it does nothing. */
export function startPublishing(
  role: Role,
  { config, metrics, log, tracker, producer }: ProcessContext,
): { stop(): Promise<void> } {
  if (role !== HOST) return { stop: async () => undefined };
  const beat = tracker.loop('publisher', LOOK_MS);
  const publisher = startPublisher({
    databaseUrl: config.databaseDirectUrl,
    log,
    ...config.journal,
    onLook: beat,
    onClaimed({ byKind, alertedShards }, seconds) {
      if (alertedShards !== null) producer.wakeStage('evaluate-alerts', alertedShards);
      if (byKind === null) return;
      metrics.journalClaim.observe(seconds);
      for (const [kind, changes] of Object.entries(byKind)) metrics.journalChanges.inc({ kind }, changes);
    },
  });
  producer.hostPublisher(publisher.wake);
  return publisher;
}
