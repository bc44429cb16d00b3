import { json, type Reply, wholeNumber } from '../server/reply.ts';
import { isoMicros } from '../wire/time-text.ts';
import type { Directory } from './directory.ts';
import { badRequest, notFound } from './query.ts';
import { SERIES_TICKER, SETTLEMENT_SOURCES } from './wire.ts';

type Wire = Record<string, unknown>;

/** The series of all engine markets, and others in the shapes of the venue. */
const SERIES = [
  {
    ticker: SERIES_TICKER,
    title: 'Simulated questions',
    category: 'Simulated',
    categories: ['Simulated', 'Exercises'],
    tags: ['Simulation'],
  },
  {
    ticker: 'KXSIMUNTAGGED',
    title: 'A series without tags',
    category: 'Climate and Weather',
    categories: ['Climate and Weather'],
    tags: null,
  },
  {
    ticker: 'KXSIMTWOTAGS',
    title: 'A series with two tags',
    category: 'Sports',
    categories: ['Sports'],
    tags: ['Baseball', 'Tennis'],
  },
] as const;

/** `GET /series`: all in one answer, without a cursor. */
export function listSeries(directory: Directory, query: URLSearchParams): Reply {
  const since = wholeNumber(query.get('min_updated_ts'));
  if (since === null) return badRequest('invalid min_updated_ts');
  const category = query.get('category') || undefined;
  const tag = query.get('tags') || undefined;
  const found = SERIES.filter(
    (each) =>
      (category === undefined || each.categories.some((own) => own === category)) &&
      (tag === undefined || each.tags?.some((own) => own === tag)) &&
      (since === undefined || updatedSecond(directory) > since),
  );
  return json({ series: found.map((each) => seriesObject(each, directory)) });
}

/** `GET /series/fee_changes`: no fee of the simulator changes. */
export function listFeeChanges(): Reply {
  return json({ series_fee_change_arr: [] });
}

/** `GET /series/{ticker}`. */
export function oneSeries(directory: Directory, ticker: string): Reply {
  const found = SERIES.find((each) => each.ticker === ticker);
  return found === undefined ? notFound() : json({ series: seriesObject(found, directory) });
}

function seriesObject(series: (typeof SERIES)[number], directory: Directory): Wire {
  return {
    additional_prohibitions: null,
    contract_terms_url: 'https://example.org/terms.pdf',
    contract_url: 'https://example.org/contract.pdf',
    fee_multiplier: 1,
    fee_type: 'quadratic',
    frequency: 'custom',
    last_updated_ts: isoMicros(updatedSecond(directory), 0),
    settlement_sources: SETTLEMENT_SOURCES,
    ...series,
  };
}

function updatedSecond({ world }: Directory): number {
  return world.options.nowSecond - world.options.historySeconds;
}
