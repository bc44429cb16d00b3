import { beforeAll, describe, expect, it } from 'vitest';
import { PAGE_ROWS } from '../../../../api/pages/kit/lists.ts';
import { enabledVenues } from '../../../../api/reads/venue-catalog.ts';
import { aStoredMarket, type StoredMarketFields, type TestMarket } from '../../../factories/stored-market.ts';
import { storedTimeline } from '../../../factories/stored-resolution.ts';
import { rowsOf, textOf } from '../../../support/html-text.ts';
import { useTestApi } from '../api-harness.ts';
import { type ConsoleClient, signIn } from './console-client.ts';

const MINUTE_MS = 60_000;
const POLL_MS = { markets: 60_000, prices: 5_000, books: 5_000, trades: 2_000 };

const api = useTestApi({ console: {}, venues: enabledVenues(['polymarket', 'kalshi'], POLL_MS), now: Date.now });
let browser: ConsoleClient;
beforeAll(async () => {
  browser = await signIn(api);
});

const ago = (minutes: number) => new Date(Date.now() - minutes * MINUTE_MS);
const shown = (at: Date) => at.toISOString().slice(0, 16).replace('T', ' ');

type Rows = Parameters<typeof storedTimeline>[2];
async function aMarket(rows: Rows, fields: StoredMarketFields = {}): Promise<TestMarket> {
  const market = await aStoredMarket(api.db, fields);
  await storedTimeline(api.db, market, rows);
  return market;
}

/** The section "Result" of the page of a market. */
async function resultOf({ marketId }: TestMarket, venue = 'polymarket'): Promise<string> {
  const { text } = await browser.page(`/markets/${venue}/${marketId}`);
  return /<section aria-labelledby="result-title">[\s\S]*?<\/section>/.exec(text)?.[0] ?? '';
}

describe('the section "Result" of a market', () => {
  it('shows the steps with their times, and payouts with every digit, when the result is paid', async () => {
    const [proposed, resolved, venueTime] = [ago(90), ago(20), ago(21)];
    const market = await aMarket([
      { transition: 'proposed', state: 'proposed', round: 1, receivedAt: proposed, reason: 'not_stated' },
      {
        transition: 'settled',
        state: 'settled',
        at: venueTime,
        receivedAt: resolved,
        payouts: ['0.333333333333333333', '0.666666666666666667'],
      },
    ]);
    const section = await resultOf(market);
    expect(textOf(section)).toContain('settled The result is paid. Payout, Yes 0.333333333333333333 Payout, No');
    const paid = 'Yes 0.333333333333333333 , No 0.666666666666666667';
    expect(rowsOf(section)).toEqual([
      ['proposed', '1', '–', shown(proposed), 'stated as present', 'The venue states no payouts.'],
      ['settled', '–', shown(venueTime), shown(resolved), 'stated as present', paid],
    ]);
  });

  it('states that no result is proposed when the market has none', async () => {
    expect(textOf(await resultOf(await aMarket([])))).toBe('Result No result is proposed.');
  });

  it('states that the venue names no payouts when the result has none', async () => {
    const market = await aMarket([
      { transition: 'resolved', state: 'resolved', receivedAt: ago(1), reason: 'not_stated' },
    ]);
    expect(textOf(await resultOf(market))).toContain(
      'resolved The venue has determined the result. The venue states no payouts.',
    );
  });

  it('states that a former release stored the result when there are no steps', async () => {
    const market = await aMarket([], { status: 'settled' });
    expect(textOf(await resultOf(market))).toContain('A former release stored this result without its steps.');
  });

  it('warns of disputes when the venue is Kalshi and the result is not paid', async () => {
    const rows: Rows = [{ transition: 'resolved', state: 'resolved', receivedAt: ago(1), payouts: ['1', '0'] }];
    const words = 'It can be disputed until it is paid.';
    expect(textOf(await resultOf(await aMarket(rows, { venue: 'kalshi' }), 'kalshi'))).toContain(words);
    expect(textOf(await resultOf(await aMarket(rows)))).not.toContain(words);
  });

  it("has the venue's word when oddswire does not know it", async () => {
    const facts = { rawState: 'in_review', observedValue: '31.2' };
    const market = await aMarket([{ transition: 'unknown', state: 'unknown', receivedAt: ago(1), facts }]);
    expect(textOf(await resultOf(market))).toContain('unknown “in_review” value 31.2');
  });
});

/** The query of the link to the next page. */
function nextOf(page: string): string {
  const [, link = ''] = /href="\/resolutions\?([^"]*)" rel="next"/.exec(page) ?? [];
  return link.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code))).replaceAll('&amp;', '&');
}

describe('the page Resolutions', () => {
  const list = async (query: string) => {
    const { status, text } = await browser.page(`/resolutions?${query}`);
    expect(status).toBe(200);
    const [changes = ''] = text.split('<h2>From close to result</h2>');
    return { rows: rowsOf(changes), text };
  };
  const titles = async (query: string) => (await list(query)).rows.map(([title]) => title);

  beforeAll(async () => {
    const resolved: Rows[number] = {
      transition: 'resolved',
      state: 'resolved',
      receivedAt: ago(30),
      payouts: ['1', '0'],
    };
    const owls = { category: 'Owls', closeAt: ago(100) };
    await aMarket([resolved], { ...owls, title: 'Owl A' });
    await aMarket([{ ...resolved, transition: 'voided', state: 'voided', payouts: ['0', '0'], reason: 'refund' }], {
      ...owls,
      title: 'Owl B',
    });
    await aMarket([resolved], { category: 'Owls', venue: 'kalshi', title: 'Owl C' });
  });

  it.each([
    ['', ['Owl C Kalshi · Owls', 'Owl B Polymarket · Owls', 'Owl A Polymarket · Owls']],
    ['&venue=kalshi', ['Owl C Kalshi · Owls']],
    ['&state=voided', ['Owl B Polymarket · Owls']],
    ['&state=disputed', []],
  ])('shows the changes of its filters, newest first, when the query is category=Owls%s', async (query, expected) => {
    expect(await titles(`category=Owls${query}`)).toEqual(expected);
  });

  it('shows payouts with labels, and a refund in words, when rows have them', async () => {
    const { rows } = await list('category=Owls&venue=polymarket');
    expect(rows.map(([, step, payouts]) => [step, payouts])).toEqual([
      ['voided', 'nothing The venue pays the stakes back.'],
      ['resolved', 'Yes 1'],
    ]);
  });

  it('has a median per venue and category, and counts unknown closes apart, when markets have results', async () => {
    const { text } = await list('');
    const groups = rowsOf(text).filter(([, category]) => category === 'Owls');
    expect(groups).toEqual([
      ['Polymarket', 'Owls', '1 h', '2', '0', '0'],
      ['Kalshi', 'Owls', '–', '0', '0', '1'],
    ]);
  });

  it('shows each change once when the pages are followed', async () => {
    const rows = Array.from({ length: PAGE_ROWS + 3 }, (_, n) => {
      return { transition: 'proposed', state: 'proposed', round: n + 1, receivedAt: ago(5) } as const;
    });
    await aMarket(rows, { category: 'Pages' });
    const first = await list('category=Pages');
    const second = await list(nextOf(first.text));
    expect([first.rows.length, second.rows.length]).toEqual([PAGE_ROWS, 3]);
    expect(second.text).not.toContain('rel="next"');
  });

  it('rejects a cursor when it belongs to other filters', async () => {
    const query = new URLSearchParams(nextOf((await list('category=Pages')).text));
    query.set('category', 'Owls');
    expect((await browser.page(`/resolutions?${query}`)).status).toBe(400);
  });
});
