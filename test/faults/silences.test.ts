import { describe, inject, it } from 'vitest';
import { createTestDatabase } from '../support/postgres/database.ts';
import { ofEach, startFleet } from '../support/processes/fleet.ts';
import { API_KEY } from '../support/processes/system.ts';
import { startTcpProxy } from '../support/processes/tcp-proxy.ts';
import { BACKENDS, type BackendKind, isAvailable } from '../support/redis/queue-backends.ts';
import { openSse, type SseEvent, type SseReader } from '../support/sse.ts';

/** A venue counts as silent after a minute, and its adapter waits for its own timeouts before. */
const LIMIT_MS = 150_000;

/** A venue that does not answer, and one that answers with errors, which the poller recognizes sooner. */
const VENUE_FAULTS = { postgres: 'hang', redis: 'status500' } as const;

/** The conclusion of a client from one message, and from nothing else. */
function meaningOf({ event, data }: SseEvent): string {
  const { reason, venues = [] } = data.data as { reason?: string; venues?: { healthy: boolean }[] };
  if (event === 'stale') return `stale: ${reason}`;
  if (event === 'heartbeat') return venues.every(({ healthy }) => healthy) ? 'quiet' : 'silent venue';
  return 'change';
}

/** The first message with this meaning, and all meanings before it. */
async function nextOf(stream: SseReader, meaning: string): Promise<{ event: SseEvent; before: Set<string> }> {
  const before = new Set<string>();
  const event = await stream.next((one) => {
    if (meaningOf(one) === meaning) return true;
    before.add(meaningOf(one));
    return false;
  }, LIMIT_MS);
  return { event, before };
}

/** A system whose API reaches its database through `network`. */
async function startSystem(backend: BackendKind) {
  const database = await createTestDatabase();
  const network = await startTcpProxy(database.url);
  const redisUrl = backend === 'redis' ? (inject('redisUrl') ?? undefined) : undefined;
  const fleet = await startFleet({
    counts: ofEach(1),
    databaseUrl: database.url,
    ...(redisUrl !== undefined && { redisUrl, queuePrefix: `silences${Date.now()}` }),
    environment: { STREAM_HEARTBEAT_MS: '1000' },
    // Only the API loses its database.
    environmentOf: { api: { DATABASE_URL: network.url } },
  });
  // Markets of the exchange rarely change, so their channel is silent.
  const stream = await openSse(`${fleet.apis()[0]}/v1/all/stream?channels=markets`, {
    authorization: `Bearer ${API_KEY}`,
  });
  return {
    network,
    fleet,
    stream,
    async stop() {
      stream.close();
      await fleet.stop();
      await network.close();
      await database.drop();
    },
  };
}

// The backends run at the same time, because the test waits for most of its time.
describe.concurrent.each(BACKENDS)('a stream without changes, queues on %s', (backend) => {
  it.skipIf(!isAvailable(backend))(
    'shows whether the market, the publisher, the database or the venue is silent',
    async ({ expect, onTestFinished }) => {
      const { network, fleet, stream, stop } = await startSystem(backend);
      onTestFinished(stop);
      const until = (meaning: string) => nextOf(stream, meaning);
      const [aggregator] = fleet.membersOf('aggregator');
      if (!aggregator) throw new Error('the fleet has no aggregator');

      const quiet = await until('quiet');
      const next = await until('quiet');
      const checkedAt = ({ data }: SseEvent) => Date.parse(String(data.data['checked_at']));
      expect(checkedAt(next.event)).toBeGreaterThan(checkedAt(quiet.event));

      aggregator.process.signal('SIGSTOP');
      const stopped = await until('stale: publisher_stalled');
      expect([...stopped.before].filter((meaning) => meaning.startsWith('stale'))).toEqual([]);
      aggregator.process.signal('SIGCONT');
      await until('quiet');

      await aggregator.process.end('SIGKILL');
      await until('stale: publisher_gone');
      await fleet.start(aggregator);
      await until('quiet');

      network.hold();
      await until('stale: database_unreachable');
      network.resume();
      await until('quiet');

      for (const host of ['gamma', 'clob', 'data'] as const)
        fleet.exchange.addFault({ host, kind: VENUE_FAULTS[backend], probability: 1 });
      const venue = await until('silent venue');
      expect([...venue.before].filter((meaning) => meaning.startsWith('stale'))).toEqual([]);
      expect(venue.event.data.data['venues']).toEqual([
        { venue: 'polymarket', healthy: false, last_success_at: expect.any(Number), feed: 'stopped', open_gaps: 0 },
      ]);
      fleet.exchange.clearFaults();
      await until('quiet');
    },
  );
});
