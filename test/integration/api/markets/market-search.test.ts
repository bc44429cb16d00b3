import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { aStoredMarket, type StoredMarketFields } from '../../../factories/stored-market.ts';
import type { Answer } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

/** A unique word. */
const aWord = () => `w${randomBytes(6).toString('hex')}`;
const stored = async (fields: StoredMarketFields) => (await aStoredMarket(api.db, fields)).marketId;
const retitle = sql(
  'test_retitle',
  'UPDATE market SET title = $2, description = $3, status = $4 WHERE venue_market_id = $1',
);

function search(q: string, more = '', venue = 'all'): Promise<Answer> {
  return client.market(`/v1/${venue}/markets?q=${encodeURIComponent(q)}${more}`);
}
const idsOf = (answer: Answer) => (answer.body.data as { market_id: string }[]).map(({ market_id }) => market_id);

/** All ids of a walk through the pages, in order. */
async function walk(q: string, limit: number, onPage?: (page: number) => Promise<unknown>): Promise<string[]> {
  const seen: string[] = [];
  let cursor = '';
  for (let page = 0; ; page++) {
    const answer = await search(q, `&limit=${limit}${cursor}`);
    expect(answer.status).toBe(200);
    seen.push(...idsOf(answer));
    if (answer.body.meta.next_cursor === null) return seen;
    cursor = `&cursor=${answer.body.meta.next_cursor}`;
    await onPage?.(page);
  }
}

describe('search', () => {
  it('returns exact titles first, then titles with the words, then descriptions, each newest first', async () => {
    const word = aWord();
    const q = `Snow ${word}`;
    const inBody = await stored({ title: 'Something else', description: `no snow on ${word}` });
    const asTitle = await stored({ title: `SNOW ${word.toUpperCase()}` });
    const split = await stored({ title: `about ${word}`, description: 'and snow' });
    const inTitle = await stored({ title: `${word} and the snow` });
    const asTitleToo = await stored({ title: q });
    const asPrefix = await stored({ title: `more snow ${word}berg` });
    const expected = [asTitleToo, asTitle, asPrefix, inTitle, split, inBody];
    const answer = await search(q);
    expect(idsOf(answer)).toEqual(expected);
    expect(answer.body.meta).toMatchObject({ search: 'words', next_cursor: null });
    for (const limit of [1, 2, 3, 5, 6]) expect(await walk(q, limit)).toEqual(expected);
    // In the other order no title equals the text, and only the last word may be a prefix.
    expect(idsOf(await search(`${word} snow`))).toEqual([asTitleToo, inTitle, asTitle, split, inBody]);
  });

  it('returns markets with the id of a market, an event or an outcome first, each market once', async () => {
    const word = aWord().toUpperCase();
    const ticker = `${word}-26DEC`;
    const inTitle = await stored({ title: `On ${ticker.toLowerCase()}` });
    const first = await stored({ marketId: `${ticker}-A`, eventId: ticker, title: `On ${ticker}` });
    const second = await stored({ marketId: `${ticker}-B`, eventId: ticker, status: 'closed' });
    expect(idsOf(await search(`${ticker}-a`))).toEqual([first]);
    const { outcomes } = await aStoredMarket(api.db, { marketId: `0x${word.toLowerCase()}` });
    expect(idsOf(await search(outcomes[0]?.outcomeId ?? ''))).toEqual([`0x${word.toLowerCase()}`]);
    expect(idsOf(await search(ticker))).toEqual([second, first, inTitle]);
    for (const limit of [1, 2]) expect(await walk(ticker.toLowerCase(), limit)).toEqual([second, first, inTitle]);
    expect(idsOf(await search(ticker, '&status=open'))).toEqual([first, inTitle]);
  });

  it('does not take a year for the id of an event', async () => {
    const word = await stored({ title: 'In 2031' });
    await stored({ eventId: '2031', title: 'Other' });
    expect(idsOf(await search('2031'))).toEqual([word]);
  });

  it('applies the filters by venue, status and category', async () => {
    const word = aWord();
    const wanted = await stored({ title: `a ${word}`, status: 'halted', category: 'snow' });
    const inBody = await stored({ description: word, status: 'halted', category: 'snow' });
    await stored({ title: word, status: 'open', category: 'snow' });
    await stored({ title: word, status: 'halted', category: 'ice' });
    await stored({ title: word, status: 'halted', category: 'snow', venue: 'retired' });
    const filters = '&status=paused&category=snow';
    expect(idsOf(await search(word, filters))).toEqual([wanted, inBody]);
    expect(idsOf(await search(word, filters, 'polymarket'))).toEqual([wanted, inBody]);
    const first = await search(word, `${filters}&limit=1`);
    expect(idsOf(await search(word, `${filters}&limit=1&cursor=${first.body.meta.next_cursor}`))).toEqual([inBody]);
    // Only similar titles match; the filters apply to them too.
    const slip = `${word.slice(0, 8)}x${word.slice(9)}`;
    const similar = await search(slip, filters);
    expect([similar.body.meta['search'], idsOf(similar)]).toEqual(['similar', [wanted]]);
  });

  it('returns each market exactly once while others arrive and change', async () => {
    const word = aWord();
    const steady: string[] = [];
    const shifting: string[] = [];
    for (let i = 0; i < 7; i++) {
      steady.unshift(await stored({ title: word }));
      steady.push(await stored({ title: `the ${word}` }));
      shifting.push(await stored({ title: `${word} as it is`, description: `${i}` }));
      await stored({ title: 'other', description: `and ${word}` });
    }
    const seen = await walk(word, 3, async (page) => {
      await stored({ title: word });
      await stored({ title: `newer ${word}` });
      await stored({ title: 'newer', description: word });
      // Any field except the words may change.
      await api.db.query(retitle, [
        shifting[page % 7],
        `${word} as it is`,
        `changed ${page}`,
        page % 2 ? 'open' : 'closed',
      ]);
    });
    expect(new Set(seen).size).toBe(seen.length);
    for (const id of [...steady, ...shifting]) expect(seen).toContain(id);
    const places = steady.map((id) => seen.indexOf(id)).slice(0, 7);
    expect(places).toEqual([...places].sort((a, b) => a - b));
  });

  it('returns each market once, newest first, for frequent and rare words', async () => {
    const word = aWord();
    const rare = aWord();
    const count = 700;
    await api.db.query(
      sql(
        'test_many_markets',
        `INSERT INTO market (venue, venue_market_id, title, description, tags, status, has_book, content_hash)
         SELECT 'polymarket', $1 || '-' || n, 'Will number ' || n || ' of ' || $1 || CASE WHEN n % 7 = 0 THEN ' be ' || $2 ELSE '' END,
           '', '{}', 'open', true, '\\x00' FROM generate_series(1, $3::int) n`,
      ),
      [word, rare, count],
    );
    const newestFirst = (step: number) => Array.from({ length: count / step }, (_, n) => `${word}-${count - step * n}`);
    expect(await walk(word, 100)).toEqual(newestFirst(1));
    expect(await walk(word.slice(0, 10), 90)).toEqual(newestFirst(1));
    expect(await walk(`${word} ${rare}`, 30)).toEqual(newestFirst(7));
  });

  it('treats every input as words and not as syntax', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string({ maxLength: 60, unit: 'grapheme' }),
          fc.string({
            maxLength: 60,
            unit: fc.constantFrom("'", '\\', '&', '|', '!', '(', ')', ':', '*', '<', '>', '-', '%', ' ', 'a'),
          }),
        ),
        async (q) => {
          const answer = await search(q, '&limit=1');
          expect(answer.status).toBe(q.includes('\0') ? 400 : 200);
        },
      ),
      { numRuns: 120 },
    );
  });
});

describe('similar titles', () => {
  it('are returned, most similar first and marked as similar, when no market contains the words', async () => {
    const far = await stored({ title: 'Bezirksamt verlegt' });
    const near = await stored({ title: 'Bezirksamtsleiter verliert die Wahl' });
    const nearer = await stored({ title: 'Bezirksamtsleiterin gewinnt' });
    const answer = await search('bezirksamtsleitrein');
    expect(answer.body.meta['search']).toBe('similar');
    expect(idsOf(answer)).toEqual([nearer, near, far].slice(0, idsOf(answer).length));
    expect(idsOf(answer).slice(0, 2)).toEqual([nearer, near]);
  });

  it('match a short word with two swapped letters', async () => {
    const id = await stored({ title: 'Zugspitze snow depth' });
    expect(idsOf(await search('zugpsitze'))).toEqual([id]);
    expect((await search('zugspitze')).body.meta['search']).toBe('words');
  });

  it('are returned once each, newest first at equal similarity, while others arrive', async () => {
    const before: string[] = [];
    for (let i = 0; i < 9; i++) before.unshift(await stored({ title: `quokkaberg sighting ${i}` }));
    const seen = await walk('quokkabegr', 2, () => stored({ title: 'quokkaberg sighting newer' }));
    expect(seen).toEqual(before);
  });

  it('are empty for text without a similar title', async () => {
    for (const q of ['!!!', 'ﷺ', '%', 'zzqqxxyywwvv']) {
      const answer = await search(q);
      expect([q, answer.status, answer.body.data]).toEqual([q, 200, []]);
    }
  });
});
