import { utc } from '../../../../cli/table.ts';
import { MARKET_STATUSES } from '../../../../src/domain/markets/market.ts';
import type { Market } from '../../../typescript/src/index.ts';
import type { Call, CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { shareText } from '../history-note.ts';
import { CURSOR, VENUE } from '../options.ts';
import { FORMATS, wholeNumber } from '../read-arguments.ts';
import { type Column, MAX_ITEMS, printFacts, printRows, readUpTo } from '../rows.ts';

const SORTS = ['created', 'volume_24h', 'close_at', 'updated'] as const;
const DEFAULT_LIMIT = 20;

const COLUMNS: readonly Column<Market<string>>[] = [
  { name: 'venue', of: ({ venue }) => venue },
  { name: 'status', of: ({ status }) => status },
  { name: 'volume_24h', of: (row) => row.volume_24h, show: (row) => whole(row.volume_24h), isNumber: true },
  { name: 'close_at', of: (row) => row.close_at, show: (row) => utc(row.close_at).slice(0, 16) },
  { name: 'title', of: (row) => titleOf(row), cutAt: 60 },
  { name: 'market_id', of: (row) => row.market_id },
];

/** Markets of one event often share a title; the label distinguishes them. */
export function titleOf({ title, sibling_label: label }: Pick<Market<string>, 'title' | 'sibling_label'>): string {
  return label === undefined || title.includes(label) ? title : `${title} (${label})`;
}

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
    await printRows(call, { rows: page.data, columns: COLUMNS, answer: page, none: 'no market' });
    return EXIT.done;
  },
};

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

export const market: CliCommand = {
  summary: 'Shows one market with its outcomes, prices and the completeness of its trades.',
  forms: ['market MARKET [--venue VENUE]'],
  options: { venue: VENUE, json: { help: 'prints market and prices as JSON' } },
  words: [1, 1],
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
    await printFacts(call, [
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
    const rows = data.outcomes.map((outcome) => ({
      ...outcome,
      ...prices?.outcomes.find(({ outcome_id }) => outcome_id === outcome.outcome_id),
    }));
    await printRows(call, {
      rows,
      columns: [
        { name: 'outcome', of: ({ label }) => label },
        { name: 'price', of: (row) => row.price, isNumber: true },
        { name: 'bid', of: (row) => row.best_bid, isNumber: true },
        { name: 'ask', of: (row) => row.best_ask, isNumber: true },
        { name: 'outcome_id', of: (row) => row.outcome_id },
      ],
      answer: data,
      none: 'no outcome',
    });
    return EXIT.done;
  },
};
