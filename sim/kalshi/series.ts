import { json, type Reply, wholeNumber } from '../server/reply.ts';
import { isoMicros, isoSeconds } from '../wire/time-text.ts';
import type { Directory } from './directory.ts';
import { badRequest, notFound } from './query.ts';
import { eventTickerOf, SERIES_TICKER, SETTLEMENT_SOURCES } from './wire.ts';

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

/** `GET /series/fee_changes`: the changes that lie ahead. */
export function listSeriesFeeChanges({ world }: Directory, query: URLSearchParams): Reply {
  const ticker = query.get('series_ticker') || SERIES_TICKER;
  const changes = ticker === SERIES_TICKER ? world.fees.announced(world.second, 'series') : [];
  return json({
    series_fee_change_arr: changes.map(({ id, second, type, multiplier }) => ({
      id: String(id),
      series_ticker: SERIES_TICKER,
      fee_type: type,
      fee_multiplier: multiplier,
      scheduled_ts: isoSeconds(second),
    })),
  });
}

/** `GET /events/fee_changes`: the same for events, which replace the values of their series. */
export function listEventFeeChanges(directory: Directory, query: URLSearchParams): Reply {
  const { world } = directory;
  const asked = query.get('event_ticker') || undefined;
  const changes = world.fees.announced(world.second, 'events').flatMap(({ id, second, eventNo, type, multiplier }) => {
    const event = world.markets.find((market) => market.event.no === eventNo)?.event;
    const ticker = event === undefined ? undefined : eventTickerOf(event);
    if (ticker === undefined || (asked !== undefined && asked !== ticker)) return [];
    return [
      {
        id: String(id),
        event_ticker: ticker,
        series_ticker: SERIES_TICKER,
        fee_type_override: type,
        fee_multiplier_override: multiplier,
        scheduled_ts: isoSeconds(second),
      },
    ];
  });
  return json({ cursor: '', event_fee_changes: changes });
}

/** `GET /series/{ticker}`. */
export function oneSeries(directory: Directory, ticker: string): Reply {
  const found = SERIES.find((each) => each.ticker === ticker);
  return found === undefined ? notFound() : json({ series: seriesObject(found, directory) });
}

function seriesObject(series: (typeof SERIES)[number], directory: Directory): Wire {
  const fee = directory.world.fees.inEffect(directory.world.second);
  return {
    additional_prohibitions: null,
    contract_terms_url: 'https://example.org/terms.pdf',
    contract_url: 'https://example.org/contract.pdf',
    fee_multiplier: fee?.multiplier,
    fee_type: fee?.type,
    frequency: 'custom',
    last_updated_ts: isoMicros(updatedSecond(directory), 0),
    settlement_sources: SETTLEMENT_SOURCES,
    ...series,
  };
}

function updatedSecond({ world }: Directory): number {
  const changed = world.fees.inEffect(world.second)?.second ?? 0;
  return Math.max(world.options.nowSecond - world.options.historySeconds, changed);
}
