import { Counter, Gauge, type Registry } from 'prom-client';

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
