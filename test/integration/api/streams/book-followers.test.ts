import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BookFollowers } from '../../../../api/streams/book-followers.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { eventually } from '../../../support/eventually.ts';
import { LosableDatabase } from '../../workers/worker-harness.ts';
import { withStreams } from './stream-world.ts';

const CLEAR = sql('test_clear_followers', 'TRUNCATE market, market_read, followed_venue CASCADE');
const FORGET = sql('test_forget_followers', 'WITH forgotten AS (DELETE FROM market_read) DELETE FROM followed_venue');
const NOTED = sql(
  'test_noted_followers',
  `SELECT m.venue_market_id AS name FROM market_read r JOIN market m ON m.id = r.market_id
   UNION ALL SELECT venue || ' as a whole' FROM followed_venue ORDER BY 1`,
);

const world = withStreams();
const noted = async () => (await world.api.db.query<{ name: string }>(NOTED)).map(({ name }) => name);
beforeEach(() => world.api.db.query(CLEAR));

describe('a stream of books', () => {
  it('makes its markets followed ones, and without a list those of its venues', async () => {
    const market = await aStoredMarket(world.api.db, { marketId: 'named' });
    await world.follow(`channels=prices,trades&market_ids=${market.marketId}`);
    await world.follow(`channels=prices,books&market_ids=${market.marketId}`);
    await eventually(noted, (names) => names.length > 0);
    expect(await noted()).toEqual(['named']);
    await world.follow('channels=books');
    await eventually(noted, (names) => names.length > 1);
    expect(await noted()).toEqual(['named', 'polymarket as a whole']);
  });
});

describe('the followers of books', () => {
  const log = createLogger({ process: 'test', level: 'silent' });
  const filter = { channels: ['books'], venue: 'polymarket', venues: ['polymarket'] } as const;
  const named = { ...filter, marketIds: new Set(['named']) };
  let nowMs = 0;
  let database: LosableDatabase;
  let followers: BookFollowers;
  beforeEach(async () => {
    await aStoredMarket(world.api.db, { marketId: 'named' });
    database = new LosableDatabase(world.api.db.dataSource);
    // Their own look would note new ones before the test forgets the notes.
    vi.useFakeTimers({ toFake: ['setInterval'] });
    followers = new BookFollowers(database, log, () => nowMs);
  });
  afterEach(async () => {
    vi.useRealTimers();
    await followers.close();
  });

  async function notedAgain(): Promise<string[]> {
    await world.api.db.query(FORGET);
    await followers.note();
    return noted();
  }

  it('are noted once at their start and then every 20 s, until the last stream ends', async () => {
    followers.add(named);
    followers.add(named);
    expect(await notedAgain()).toEqual(['named']);
    expect(await notedAgain()).toEqual([]);
    followers.add(filter);
    expect(await notedAgain()).toEqual(['polymarket as a whole']);
    nowMs += 20_000;
    expect(await notedAgain()).toEqual(['named', 'polymarket as a whole']);
    followers.remove(named);
    followers.remove(filter);
    nowMs += 20_000;
    expect(await notedAgain()).toEqual(['named']);
    followers.remove(named);
    nowMs += 20_000;
    expect(await notedAgain()).toEqual([]);
  });

  it('are noted when the database answers again', async () => {
    database.loseStatements = ['note_streamed_markets'];
    followers.add(named);
    expect(await notedAgain()).toEqual([]);
    database.loseStatements = [];
    expect(await notedAgain()).toEqual(['named']);
  });
});
