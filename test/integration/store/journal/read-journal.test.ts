import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { sessionQueryable } from '../../../../src/store/db/tx.ts';
import { readChanges, readJournal, readJournalHead, SETTINGS } from '../../../../src/store/journal/read-journal.ts';
import { appendChanges, type NewChange } from '../../../support/journal.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const test = useTestDatabase();

function change(marketId: string, venue = 'polymarket'): NewChange {
  return { kind: 'price', venue, marketId, outcomeId: `${marketId}-yes`, body: { price: '0.10', as_of: 5 } };
}

describe('readChanges', () => {
  it('returns the changes of a range in order, with the filters of the caller', async () => {
    const start = await readJournalHead(test.db);
    expect(start).toMatchObject({ seq: 0, oldestSeq: 1 });
    await appendChanges(test.db, [change('a'), change('b', 'kalshi'), change('a')]);
    const head = await readJournalHead(test.db);
    expect(head).toMatchObject({ epoch: start.epoch, seq: 3, oldestSeq: 1 });
    const read = (more: object) => readChanges(test.db, { after: 0, upTo: head.seq, limit: 10, ...more });
    expect((await read({})).map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(await read({ venue: 'kalshi' })).toMatchObject([
      {
        seq: 2,
        kind: 'price',
        marketId: 'b',
        outcomeId: 'b-yes',
        body: { market_id: 'b', outcome_id: 'b-yes', price: '0.10', as_of: 5 },
      },
    ]);
    expect((await read({ marketIds: ['a'], after: 1 })).map(({ seq }) => seq)).toEqual([3]);
    expect((await read({ limit: 2 })).map(({ seq }) => seq)).toEqual([1, 2]);
  });
});

describe('readJournal', () => {
  it('returns the head with the changes behind the position, or alone', async () => {
    const client = new pg.Client({ connectionString: test.url });
    await client.connect();
    const session = sessionQueryable(client);
    await session.query(SETTINGS);
    const read = (behind: Parameters<typeof readJournal>[1]) => readJournal(session, behind);
    const { seq: start } = await readJournalHead(test.db);
    await appendChanges(test.db, [change('a'), change('b'), change('c')]);
    const head = await readJournalHead(test.db);
    const whole = await read({ after: start, limit: 10 });
    expect(whole.head).toMatchObject({ epoch: head.epoch, seq: start + 3, oldestSeq: head.oldestSeq });
    expect(whole.head.readAt.getTime()).toBeGreaterThanOrEqual(head.readAt.getTime());
    expect(whole.changes).toEqual(await readChanges(test.db, { after: start, upTo: head.seq, limit: 10 }));
    expect((await read({ after: start + 1, limit: 1 })).changes).toMatchObject([{ seq: start + 2 }]);
    const future = new Date(Date.now() + 3_600_000);
    expect((await read({ after: start, limit: 10, notBefore: future })).changes).toEqual([]);
    expect(await read({ after: head.seq, limit: 10 })).toMatchObject({ head: { seq: head.seq }, changes: [] });
    await client.end();
  });
});
