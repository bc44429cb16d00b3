import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { DURATION_BUCKETS } from './buckets.ts';

/** The journal and its publisher. */
export function journalMetrics(registry: Registry) {
  const registers = [registry];
  return {
    journalChanges: new Counter({
      name: 'journal_changes_total',
      help: 'Changes that this process published',
      labelNames: ['kind'],
      registers,
    }),
    journalClaim: new Histogram({
      name: 'journal_claim_duration_seconds',
      help: 'One claim of the publisher: marks, facts, rows of the journal, commit',
      buckets: DURATION_BUCKETS,
      registers,
    }),
    journalCheckedAge: new Gauge({
      name: 'journal_checked_age_seconds',
      help: 'Time since the journal last held every committed change; streams withhold heartbeats above 1',
      registers,
    }),
    journalSeq: new Gauge({ name: 'journal_seq', help: 'The last number of the journal', registers }),
    journalBytes: new Gauge({ name: 'journal_bytes', help: 'Size of the journal with its indexes', registers }),
  };
}
