import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { DURATION_BUCKETS } from './buckets.ts';

/** Jobs, queues and stages, and their results. The label is `job_name`, because Prometheus uses `job` for its targets. */
export function workMetrics(registry: Registry) {
  const registers = [registry];
  const buckets = DURATION_BUCKETS;
  return {
    jobs: new Histogram({
      name: 'job_duration_seconds',
      help: 'Jobs run by this process',
      labelNames: ['job_name', 'outcome'],
      buckets,
      registers,
    }),
    jobLastSuccess: new Gauge({
      name: 'job_last_success_timestamp_seconds',
      help: 'When a job of this kind last succeeded in this process, Unix time',
      labelNames: ['job_name'],
      registers,
    }),
    wakeFailures: new Counter({
      name: 'wake_up_failures_total',
      help: 'Wake-ups that the queue store rejected; a timer repeats them',
      labelNames: ['job_name'],
      registers,
    }),
    queueJobs: new Gauge({
      name: 'queue_jobs',
      help: 'Jobs of a queue by state, over all processes',
      labelNames: ['queue', 'state'],
      registers,
    }),
    queuePaused: new Gauge({
      name: 'queue_paused',
      help: 'Whether an operator paused the queue: 1 or 0',
      labelNames: ['queue'],
      registers,
    }),
    queueOldestWaiting: new Gauge({
      name: 'queue_oldest_waiting_seconds',
      help: 'Age of the oldest runnable job; 0 without one and when the queue is paused',
      labelNames: ['queue'],
      registers,
    }),
    marksWaiting: new Gauge({
      name: 'stage_marks_waiting',
      help: 'Unclaimed marks of a stage; counted up to 100000',
      labelNames: ['stage'],
      registers,
    }),
    marksOldest: new Gauge({
      name: 'stage_oldest_mark_seconds',
      help: 'Minimum age of the oldest mark, as observed by this process',
      labelNames: ['stage'],
      registers,
    }),
    deadLetters: new Gauge({
      name: 'stage_marks_parked',
      help: 'Dead-lettered marks: an operator should check them',
      labelNames: ['stage'],
      registers,
    }),
    marksClaimed: new Counter({
      name: 'stage_marks_claimed_total',
      help: 'Claimed marks',
      labelNames: ['stage'],
      registers,
    }),
    stageBatch: new Histogram({
      name: 'stage_batch_duration_seconds',
      help: 'One claim of one shard with its work: candle folding, snapshots, alert evaluation',
      labelNames: ['stage'],
      buckets,
      registers,
    }),
    refoldProgress: new Gauge({
      name: 'candle_refold_progress_ratio',
      help: 'Share of the outcomes whose stored candles a pass has compared with their trades, 0 to 1',
      labelNames: ['pass'],
      registers,
    }),
    alertsFired: new Counter({ name: 'alerts_fired_total', help: 'Alerts that fired', registers }),
    alertsExpired: new Counter({
      name: 'alerts_expired_total',
      help: 'Alerts whose market had its final outcome before they were met',
      registers,
    }),
    broadcasts: new Counter({
      name: 'broadcast_events_total',
      help: 'Events about the data of venues: one per fact and account',
      labelNames: ['type'],
      registers,
    }),
    triggerLatency: new Histogram({
      name: 'alert_trigger_latency_seconds',
      help: 'Time from the observation that met an alert (or its creation, if later) to its event',
      buckets,
      registers,
    }),
    attempts: new Counter({
      name: 'webhook_attempts_total',
      help: 'Delivery attempts',
      labelNames: ['outcome', 'error_code'],
      registers,
    }),
    attemptDuration: new Histogram({
      name: 'webhook_attempt_duration_seconds',
      help: 'Duration of delivery attempts',
      labelNames: ['outcome'],
      buckets,
      registers,
    }),
    deliveriesPostponed: new Counter({
      name: 'webhook_postponed_total',
      help: 'Deliveries that found no free connection to their host and returned to the queue without an attempt',
      registers,
    }),
    deliveryLatency: new Histogram({
      name: 'webhook_delivery_latency_seconds',
      help: 'Time from the event to its delivery, by first attempts and retries',
      labelNames: ['attempt'],
      buckets: [...buckets, 300, 3_600, 36_000],
      registers,
    }),
    deliveriesDue: new Gauge({
      name: 'webhook_deliveries_due',
      help: 'Deliveries with a due attempt; counted up to 100000',
      registers,
    }),
    oldestOverdueSeconds: new Gauge({
      name: 'webhook_oldest_due_seconds',
      help: 'Overdue time of the oldest due delivery',
      registers,
    }),
  };
}

export type StreamMetrics = ReturnType<typeof streamMetrics>;

/** Open streams, and the messages that they get. */
export function streamMetrics(registry: Registry) {
  const registers = [registry];
  return {
    streamConnections: new Gauge({
      name: 'stream_connections',
      help: 'Open streams of this process',
      registers,
    }),
    streamSubscriptions: new Gauge({
      name: 'stream_subscriptions',
      help: 'Subscriptions of the open streams; a stream without several counts once',
      registers,
    }),
    streamUnsentBytes: new Gauge({
      name: 'stream_unsent_bytes',
      help: 'Messages that wait for their readers: of all streams together, of the one with the most, and of slow readers together',
      labelNames: ['of'],
      registers,
    }),
    streamMessages: new Counter({
      name: 'stream_messages_total',
      help: 'Changes handed to subscriptions, by message type',
      labelNames: ['type'],
      registers,
    }),
    streamConflated: new Counter({
      name: 'stream_conflated_total',
      help: 'Unsent states that a later state replaced, because the reader was slow',
      registers,
    }),
    streamsEnded: new Counter({
      name: 'streams_ended_total',
      help: 'Ended streams by protocol and reason',
      labelNames: ['protocol', 'reason'],
      registers,
    }),
  };
}
