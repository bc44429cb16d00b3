import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../../../src/observe/logger.ts';
import { createDataSource } from '../../../../src/store/db/data-source.ts';
import { migrate } from '../../../../src/store/db/migrate.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { Database, sessionQueryable, sql } from '../../../../src/store/db/tx.ts';
import type { Claimed } from '../../../../src/store/journal/claim.ts';
import { startPublisher } from '../../../../src/store/journal/publisher.ts';
import { JOURNAL_CHANNEL, readJournalHead } from '../../../../src/store/journal/read-journal.ts';
import { pruneJournal } from '../../../../src/store/journal/retention.ts';
import { PUBLISH_CHANNEL } from '../../../../src/store/marks/lane-signals.ts';
import { markMarkets } from '../../../../src/store/marks/publish-marks.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { eventually } from '../../../support/eventually.ts';
import { gate } from '../../../support/gate.ts';
import { changesAfter } from '../../../support/journal.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';
import { createRestrictedDatabase } from '../../../support/postgres/roles.ts';

type Publisher = ReturnType<typeof startPublisher>;

const log = createLogger({ process: 'test', level: 'silent' });
const BACKENDS = sql(
  'test_publishers',
  `SELECT pid, wait_event_type = 'Lock' AS is_blocked FROM pg_stat_activity
   WHERE application_name = 'oddswire-publisher' AND datname = current_database()`,
);
const TERMINATE = sql('test_terminate_publisher', 'SELECT pg_terminate_backend($1)');
const DROP_PARTITIONS = sql(
  'test_drop_journal_partitions',
  `SELECT drop_journal_partition(c.relname) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
   WHERE i.inhparent = 'journal'::regclass`,
);
/** The head that a publisher leaves when the clock is set back by this number of minutes. */
const SET_CLOCK_BACK = sql(
  'test_set_clock_back',
  `INSERT INTO journal_head (turn, epoch, origin, seq, oldest_seq, at, checked_at, closed_until, published)
   SELECT turn + 1, epoch, origin, seq, oldest_seq, at + by, checked_at + by, closed_until + extract(epoch FROM by)::bigint, published
   FROM (SELECT * FROM journal_head ORDER BY turn DESC LIMIT 1) h, (SELECT $1::int * interval '1 minute' AS by) b`,
);
/** The heartbeat of a process of the release before migration 0038, which stays fresh. */
const FORMER_API = sql(
  'test_former_api',
  `INSERT INTO process_heartbeat (process, host, pid, version, seen_at)
   VALUES ('api', 'h', 1, '0', clock_timestamp() + interval '1 hour')`,
);
const BLOCK_HEARTBEATS = sql('test_block_heartbeats', 'LOCK TABLE process_heartbeat IN ACCESS EXCLUSIVE MODE');
const SIGNAL_PUBLISHER = sql('test_signal_publisher', `SELECT pg_notify('${PUBLISH_CHANNEL}', '')`);
const BLOCK_HEADS = sql('test_block_heads', 'LOCK TABLE journal_head IN SHARE ROW EXCLUSIVE MODE');

let test: TestDatabase;
let market: TestMarket;
let publishers: Publisher[];
beforeEach(async () => {
  test = await createTestDatabase({ poolSize: 20 });
  market = await aStoredMarket(test.db);
  publishers = [];
  const partitions = new Partitions(test.db);
  await partitions.ensureAroundNow('observation');
  await partitions.ensure('trade', [Date.now()]);
});
afterEach(async () => {
  await Promise.all(publishers.map((publisher) => publisher.stop()));
  await test.drop();
});

async function looksBlocked(): Promise<boolean> {
  return (await test.db.query<{ isBlocked: boolean | null }>(BACKENDS)).some(({ isBlocked }) => isBlocked === true);
}

function start(more: Partial<Parameters<typeof startPublisher>[0]> = {}): Publisher {
  const publisher = startPublisher({
    databaseUrl: test.url,
    log,
    retentionMinutes: 120,
    maxBytes: 1e9,
    ...more,
  });
  publishers.push(publisher);
  return publisher;
}

function trades(from: number, count: number) {
  const outcomeId = market.outcomes[0]?.outcomeId ?? '';
  return Array.from({ length: count }, (_, i) => ({
    tradeId: `t-${from + i}`,
    outcomeId,
    marketId: market.marketId,
    tsMs: Date.now(),
    price: '0.5',
    size: '1',
  }));
}

const store = (from: number, count: number) =>
  test.db.transaction((tx) => writeTrades(tx, trades(from, count) as never, 'USD'));

/** Waits until this number of trades is in the journal, and returns their ids in order. */
async function published(count: number): Promise<unknown[]> {
  const changes = await eventually(
    () => changesAfter(test.db),
    (found) => found.length >= count,
    { everyMs: 20 },
  );
  expect(changes.map(({ seq }) => seq)).toEqual(changes.map((_, i) => i + 1));
  return changes.map(({ body }) => body['trade_id']);
}

const names = (count: number) => Array.from({ length: count }, (_, i) => `t-${i}`).sort();

describe('startPublisher', () => {
  it('renews checked_at without any change', async () => {
    const begun = await readJournalHead(test.db);
    start();
    const first = await eventually(
      () => readJournalHead(test.db),
      ({ epoch }) => epoch !== begun.epoch,
      { everyMs: 20 },
    );
    const later = await eventually(
      () => readJournalHead(test.db),
      ({ checkedAt }) => checkedAt.getTime() - first.checkedAt.getTime() > 1_000,
      { everyMs: 20 },
    );
    expect(later.seq).toBe(0);
  });

  it('renews the head at few of its looks at rest, and at nearly each while a process of the former release reads it', async () => {
    const seen = { looks: 0, claims: 0 };
    const onLook = () => {
      seen.looks += 1;
    };
    const onClaimed = () => {
      seen.claims += 1;
    };
    start({ onLook, onClaimed });
    const during = async (looks: number) => {
      const from = { ...seen };
      const fromMs = performance.now();
      const to = await eventually(
        async () => ({ ...seen }),
        (now) => now.looks >= from.looks + looks,
        { everyMs: 5 },
      );
      return { looks: to.looks - from.looks, claims: to.claims - from.claims, ms: performance.now() - fromMs };
    };
    await during(3);
    const rest = await during(30);
    // A head is renewed when it is two seconds old: at every eleventh look, and more often on a machine whose looks are late. One claim
    // more may close the candles of a minute.
    expect(rest.claims).toBeLessThanOrEqual(rest.ms / 2_000 + 2);
    await test.db.query(FORMER_API);
    await during(2);
    const upgrade = await during(10);
    expect(upgrade.claims).toBeGreaterThanOrEqual(upgrade.looks / 2);
  });

  it('leaves the head to the other of two publishers at rest, and takes over after it ended, when a mark waits', async () => {
    const claims: Claimed[][] = [[], []];
    let looks = 0;
    const first = start({ onClaimed: (claimed) => void claims[0]?.push(claimed) });
    await store(0, 1);
    await published(1);
    const onLook = () => {
      looks += 1;
    };
    const second = start({ onClaimed: (claimed) => void claims[1]?.push(claimed), onLook });
    const before = claims[0]?.length ?? 0;
    await eventually(
      async () => claims[0]?.length ?? 0,
      (count) => count >= before + 3 && looks > 10,
      { everyMs: 20 },
    );
    expect(claims[1]).toEqual([]);
    expect(second.wake()).toBe(false);
    await first.stop();
    expect(first.wake()).toBe(false);
    await store(1, 2);
    expect((await published(3)).sort()).toEqual(names(3));
    // A reader can see a commit before its publisher has the answer.
    await eventually(
      async () => claims[1]?.length ?? 0,
      (count) => count > 0,
      { everyMs: 5 },
    );
  });

  it.each([
    ['a signal', () => test.db.query(SIGNAL_PUBLISHER)],
    ['a wake-up in its process', async (publisher: Publisher) => expect(publisher.wake()).toBe(true)],
  ])('claims after %s without a look', async (_, signal) => {
    const claims: Claimed[] = [];
    const publisher = start({ onClaimed: (claimed) => void claims.push(claimed) });
    expect(publisher.wake()).toBe(false);
    await store(0, 1);
    await published(1);
    let stored = 1;
    /** Whether a claim publishes while no look can end: a look reads the heartbeats, and a claim does not. */
    async function claimsWithoutLook(): Promise<boolean> {
      return test.db.transaction(async (tx) => {
        await tx.query(BLOCK_HEARTBEATS);
        const before = claims.length;
        const isDone = () => claims.slice(before).some(({ changes }) => changes > 0);
        await store(stored++, 1);
        await signal(publisher);
        await eventually(
          async () => isDone() || (await looksBlocked()),
          (isDecided) => isDecided,
          { everyMs: 5 },
        );
        return isDone();
      });
    }
    // A look that is due at the moment of the signal waits for the lock, on a busy machine mostly.
    for (let hasClaimed = 0; hasClaimed < 4; ) {
      await published(stored);
      if (await claimsWithoutLook()) hasClaimed += 1;
    }
    expect((await published(stored)).sort()).toEqual(names(stored));
  });

  it('publishes every trade once while two publishers run and twenty writers commit', async () => {
    const claims: Claimed[][] = [[], []];
    start({ marksPerClaim: 7, onClaimed: (claimed) => void claims[0]?.push(claimed) });
    start({ marksPerClaim: 7, onClaimed: (claimed) => void claims[1]?.push(claimed) });
    const writers = Array.from({ length: 15 }, async (_, writer) => {
      for (let page = 0; page < 10; page++) await store(writer * 40 + page * 4, 4);
    });
    await Promise.all(writers);
    expect((await published(600)).sort()).toEqual(names(600));
    expect(await changesAfter(test.db)).toHaveLength(600);
    const turns = claims.flat().map(({ turn }) => turn);
    expect(new Set(turns).size).toBe(turns.length);
  });

  it('publishes the marks of a claim that was killed before its commit', async () => {
    const first = start();
    await store(0, 1);
    await published(1);
    await first.stop();
    const mayEnd = gate();
    const blocked = gate();
    const blocking = test.db.transaction(async (tx) => {
      await tx.query(BLOCK_HEADS);
      blocked.open();
      await mayEnd.opened;
    });
    await blocked.opened;
    await store(1, 6);
    start();
    const [waiting] = await eventually(
      () => test.db.query<{ pid: number; isBlocked: boolean }>(BACKENDS),
      (found) => found.some(({ isBlocked }) => isBlocked),
      { everyMs: 20 },
    );
    await test.db.query(TERMINATE, [waiting?.pid]);
    expect(await changesAfter(test.db)).toHaveLength(1);
    mayEnd.open();
    await blocking;
    expect((await published(7)).sort()).toEqual(names(7));
  });

  it('makes the partition of the moment when a claim finds none', async () => {
    start();
    await store(0, 1);
    await published(1);
    // As for a publisher that was stopped for longer than its partitions reach, and when the clock jumps ahead.
    await test.db.query(DROP_PARTITIONS);
    await store(1, 5);
    const changes = await eventually(
      () => changesAfter(test.db),
      (found) => found.length === 5,
      { everyMs: 20 },
    );
    expect(changes.map(({ seq }) => seq)).toEqual([2, 3, 4, 5, 6]);
  });

  it.each([
    ['by less than two hours', 'continues', 60],
    ['by more than two hours', 'begins another epoch', 180],
  ])('publishes at once when the clock was set back %s: it %s', async (_by, _how, minutes) => {
    const first = start();
    await store(0, 1);
    await published(1);
    await first.stop();
    await test.db.query(SET_CLOCK_BACK, [minutes]);
    const before = await readJournalHead(test.db);
    start();
    const renewed = await eventually(
      () => readJournalHead(test.db),
      ({ checkedAt, readAt }) => checkedAt <= readAt,
      { everyMs: 20 },
    );
    expect(renewed.epoch === before.epoch).toBe(minutes < 120);
    await store(1, 3);
    const changes = await eventually(
      () => changesAfter(test.db, renewed.seq),
      (found) => found.length === 3,
      { everyMs: 20 },
    );
    expect(changes.map(({ body }) => body['trade_id']).sort()).toEqual(names(4).slice(1));
  });

  it('continues within the claims of a stopped publisher', async () => {
    const first = start();
    await store(0, 2);
    await published(2);
    start();
    await first.stop();
    await store(2, 2);
    expect((await published(4)).sort()).toEqual(names(4));
  });

  it('notifies readers of the last number at the commit of a claim with changes, and of no other claim', async () => {
    const client = new pg.Client({ connectionString: test.url });
    await client.connect();
    const notified: number[] = [];
    client.on('notification', ({ payload }) => notified.push(Number(payload)));
    await client.query(`LISTEN ${JOURNAL_CHANNEL}`);
    try {
      let looks = 0;
      const onLook = () => {
        looks += 1;
      };
      const publisher = start({ onLook });
      await store(0, 3);
      await published(3);
      const before = looks;
      await eventually(
        async () => looks,
        (count) => count > before + 1,
        { everyMs: 20 },
      );
      await publisher.stop();
      // The answer follows the notifications of earlier commits.
      const { rows } = await client.query<{ seq: string }>('SELECT max(seq) AS seq FROM journal_head');
      expect(notified.at(-1)).toBe(Number(rows[0]?.seq));
      expect(new Set(notified).size).toBe(notified.length);
    } finally {
      await client.end();
    }
  });

  it('publishes and drops partitions with the restricted role of the processes', async () => {
    const database = await createRestrictedDatabase();
    const dataSource = createDataSource({
      databaseUrl: database.migrateUrl,
      poolSize: 2,
      applicationName: 'test',
      log,
    });
    try {
      await dataSource.initialize();
      await migrate(dataSource);
      const db = new Database(dataSource);
      const stored = await aStoredMarket(db);
      const publisher = start({ databaseUrl: database.appUrl });
      await markMarkets(db, [stored.pk]);
      await eventually(
        () => readJournalHead(db),
        ({ seq }) => seq === 1,
        { everyMs: 20 },
      );
      await publisher.stop();
      const client = new pg.Client({ connectionString: database.appUrl });
      await client.connect();
      const session = sessionQueryable(client);
      await session.query(
        sql('test_role_partition', `SELECT create_journal_partition(clock_timestamp() - interval '1 hour')`),
      );
      expect((await pruneJournal(session, { retentionMinutes: 10, maxBytes: 1e9 })).dropped).toHaveLength(1);
      await expect(client.query(`SELECT drop_journal_partition('market')`)).rejects.toMatchObject({ code: '22023' });
      await expect(
        client.query(`SELECT create_journal_partition(clock_timestamp() + interval '1 day')`),
      ).rejects.toMatchObject({ code: '22023' });
      await client.end();
    } finally {
      await dataSource.destroy();
      await database.drop();
    }
  });
});
