import { utc } from '../../../../cli/table.ts';
import { MARKET_STATUSES } from '../../../../src/domain/markets/market.ts';
import { compareDecimals, type Decimal, parseDecimal, ZERO } from '../../../../src/domain/values/decimal.ts';
import type { Market } from '../../../typescript/src/index.ts';
import type { Call, CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { CURSOR, FORMATS, VENUE, wholeNumber } from '../read-arguments.ts';
import { type Column, MAX_ITEMS, printFacts, printRows, readUpTo, shareText, titleOf } from '../rows.ts';
import { shortIdsOf } from '../short-ids/listed.ts';

const SORTS = ['created', 'volume_24h', 'close_at', 'updated'] as const;
const DEFAULT_LIMIT = 20;

/** The columns where the output is no terminal: programs read them by their places. */
const COLUMNS: readonly Column<Market<string>>[] = [
  { name: 'venue', of: ({ venue }) => venue },
  { name: 'status', of: ({ status }) => status },
  { name: 'volume_24h', of: (row) => row.volume_24h, show: (row) => whole(row.volume_24h), isNumber: true },
  { name: 'close_at', of: (row) => row.close_at, show: (row) => utc(row.close_at).slice(0, 16) },
  { name: 'title', of: (row) => titleOf(row), cutAt: 60 },
  { name: 'market_id', of: (row) => row.market_id },
];

/** A market with its short id and the outcome of the highest price. */
interface Row extends Market<string> {
  shortId: string;
  leader: { label: string; price: string } | undefined;
}

const TERMINAL_COLUMNS: readonly Column<Row>[] = [
  { name: 'id', of: (row) => row.shortId },
  { name: 'venue', of: ({ venue }) => venue },
  { name: 'leader', of: ({ leader }) => leader?.label, cutAt: 12 },
  { name: 'price', of: ({ leader }) => leader?.price, show: ({ leader }) => leader?.price ?? '-', isNumber: true },
  {
    name: 'volume 24h',
    of: (row) => row.volume_24h,
    show: (row) => whole(row.volume_24h),
    isNumber: true,
    leaveOut: 3,
  },
  { name: 'closes', of: (row) => row.close_at, show: (row) => utc(row.close_at).slice(0, 10), leaveOut: 2 },
  { name: 'status', of: ({ status }) => status, leaveOut: 1 },
  { name: 'market', of: (row) => titleOf(row), cutAt: 120 },
];

function whole(decimal: string | undefined): string {
  return decimal === undefined ? '' : Math.round(Number(decimal)).toLocaleString('en-US');
}

export const markets: CliCommand = {
  summary: 'Searches and lists markets.',
  forms: ['markets [WORDS…] [--venue VENUE] [--status STATUS] [--sort ORDER] [--limit N]'],
  options: {
    venue: VENUE,
    status: { value: 'STATUS', choices: MARKET_STATUSES, help: 'only markets in this state' },
    category: { value: 'NAME', help: "only this category, in the venue's spelling" },
    event: { value: 'ID', help: 'only markets of this event' },
    sort: {
      value: 'ORDER',
      choices: SORTS,
      help: 'the order of a list without WORDS; with WORDS the best match comes first',
    },
    limit: { value: 'N', help: `the number of markets, by default ${DEFAULT_LIMIT}` },
    cursor: CURSOR,
    ...FORMATS,
  },
  words: [0, 50],
  async run(call) {
    const page = await findMarkets(call, { limit: DEFAULT_LIMIT });
    const shown = { answer: page, none: 'no market' };
    const isForPerson = call.io.stdout.isTerminal && !call.flags.has('json') && !call.flags.has('csv');
    if (!isForPerson) await printRows(call, { ...shown, rows: page.data, columns: COLUMNS });
    else await printRows(call, { ...shown, rows: await rowsOf(call, page.data), columns: TERMINAL_COLUMNS });
    return EXIT.done;
  },
};

function decimalOf(price: string): Decimal {
  return parseDecimal(price) ?? ZERO;
}

/** The API takes the ids of so many markets in a request of prices. */
const MAX_PRICED = 100;

async function rowsOf(call: Call, listed: readonly Market<string>[]): Promise<Row[]> {
  const { signal } = call.io;
  const client = call.client();
  const prices = new Map<string, string>();
  for (const venue of new Set(listed.map((market) => market.venue))) {
    const markets = listed.filter((market) => market.venue === venue);
    for (let at = 0; at < markets.length; at += MAX_PRICED) {
      const ids = markets.slice(at, at + MAX_PRICED).map(({ market_id: id }) => id);
      const { data } = await client.markets.manyPrices({ market_ids: ids, venue }, { signal });
      for (const { outcomes } of data) {
        for (const { outcome_id: id, price } of outcomes) if (price !== undefined) prices.set(`${venue} ${id}`, price);
      }
    }
  }
  const shortIdOf = await shortIdsOf(call, listed);
  return listed.map((market) => {
    const { venue, market_id: id, outcomes } = market;
    const priced = outcomes.flatMap(({ outcome_id: outcome, label }) => {
      const price = prices.get(`${venue} ${outcome}`);
      return price === undefined ? [] : [{ label, price }];
    });
    const leader = priced.toSorted((a, b) => compareDecimals(decimalOf(b.price), decimalOf(a.price)))[0];
    return { ...market, shortId: shortIdOf('market', venue, id), leader };
  });
}

/** The markets that the words and options of a call select. */
export function findMarkets(call: Call, defaults: { limit: number; status?: string; sort?: string }) {
  const { texts, words } = call;
  const query = words.join(' ').trim();
  const given = (name: string, fallback?: string) => texts.get(name) ?? fallback;
  const status = given('status', defaults.status);
  const sort = given('sort', query === '' ? defaults.sort : undefined);
  const [venue, category, event] = [given('venue'), given('category'), given('event')];
  const client = call.client();
  return readUpTo(wholeNumber(call, 'limit', [1, MAX_ITEMS]) ?? defaults.limit, texts.get('cursor'), (place) =>
    client.markets.list(
      {
        ...(venue !== undefined && { venue }),
        ...(query !== '' && { q: query }),
        ...(status !== undefined && { status: status as (typeof MARKET_STATUSES)[number] }),
        ...(category !== undefined && { category }),
        ...(event !== undefined && { event_id: event }),
        ...(sort !== undefined && { sort: sort as (typeof SORTS)[number] }),
        ...place,
      },
      { signal: call.io.signal },
    ),
  );
}

type Outcome = Market<string>['outcomes'][number];

export const market: CliCommand = {
  summary: 'Shows one market with its outcomes, prices and the completeness of its trades.',
  forms: ['market MARKET [--venue VENUE]'],
  options: { venue: VENUE, json: { help: 'prints market and prices as JSON' } },
  words: [1, 1],
  ids: { words: 'market' },
  async run(call) {
    const { signal } = call.io;
    const venue = call.texts.get('venue');
    const asked = { market_id: call.words[0] ?? '', ...(venue !== undefined && { venue }) };
    const client = call.client();
    const [{ data }, quotes] = await Promise.all([
      client.markets.get(asked, { signal }),
      client.markets.manyPrices({ market_ids: [asked.market_id], ...(venue !== undefined && { venue }) }, { signal }),
    ]);
    const prices = quotes.data[0];
    if (call.flags.has('json')) {
      await call.print(`${JSON.stringify({ market: data, prices: prices ?? null }, null, 2)}\n`);
      return EXIT.done;
    }
    const { coverage } = data;
    const shortIdOf = call.io.stdout.isTerminal ? await shortIdsOf(call, [data]) : undefined;
    await printFacts(call, [
      ['short id', shortIdOf?.('market', data.venue, data.market_id)],
      ['title', titleOf(data)],
      ['event', data.event_title],
      ['venue', data.venue],
      ['status', data.status],
      ['category', data.category],
      ['closes', utc(data.close_at)],
      ['volume', data.volume],
      ['volume 24 h', data.volume_24h],
      ['market_id', data.market_id],
      ['address', data.url],
      [
        'completeness',
        coverage && `${shareText(coverage.share)} of the venue's volume since ${utc(coverage.since)} UTC`,
      ],
      ['prices as of', utc(prices?.as_of)],
    ]);
    const quoteOf = ({ outcome_id: id }: Outcome) => prices?.outcomes.find(({ outcome_id }) => outcome_id === id);
    const ids: Column<Outcome>[] = [{ name: 'outcome_id', of: ({ outcome_id: id }) => id, leaveOut: 1 }];
    if (shortIdOf !== undefined) {
      ids.unshift({ name: 'id', of: ({ outcome_id: id }) => shortIdOf('outcome', data.venue, id) });
    }
    const columns: Column<Outcome>[] = [
      { name: 'outcome', of: ({ label }) => label },
      { name: 'price', of: (row) => quoteOf(row)?.price, isNumber: true },
      { name: 'bid', of: (row) => quoteOf(row)?.best_bid, isNumber: true },
      { name: 'ask', of: (row) => quoteOf(row)?.best_ask, isNumber: true },
      ...ids,
    ];
    await printRows(call, { rows: data.outcomes, columns, answer: data, none: 'no outcome' });
    return EXIT.done;
  },
};
