import { isHttpStatus } from '../errors.ts';
import type { CallContext, HistoryRequest } from '../port.ts';
import { parseVenueTimeMs } from '../venue-time.ts';
import type { KalshiClient } from './client.ts';
import { fieldOf, parseMarkets } from './parse-market.ts';
import { type HistoryStep, readHistoryPage } from './walk-history.ts';

/** The cutoff moves by days; the walk allows for more than this age. */
const CUTOFF_MAX_AGE_MS = 3_600_000;

/** The next page of a market's trades; see `pollHistory` of the port. */
type ReadHistory = (request: HistoryRequest, position: unknown, context: CallContext) => Promise<HistoryStep>;

export function createHistoryReader(
  client: KalshiClient,
  settings: { pageSize: number; takeTurn(signal: AbortSignal): Promise<void> },
): ReadHistory {
  const { takeTurn } = settings;
  let known: { atMs: number; second: number | undefined } | undefined;

  async function cutoffSecond({ signal, now }: CallContext): Promise<number | undefined> {
    const ageMs = now() - (known?.atMs ?? Number.NEGATIVE_INFINITY);
    if (known === undefined || ageMs < 0 || ageMs >= CUTOFF_MAX_AGE_MS) {
      await takeTurn(signal);
      known = { atMs: now(), second: await readCutoff(client, signal) };
    }
    return known.second;
  }

  return (request, position, context) =>
    readHistoryPage(request, position, context.now(), settings, {
      async list(route, parameters) {
        await takeTurn(context.signal);
        const query = { ticker: request.marketId, ...parameters };
        return route === 'live'
          ? client.listTrades(query, context.signal)
          : client.listArchivedTrades(query, context.signal);
      },
      cutoffSecond: () => cutoffSecond(context),
      async hasBegunBefore(second) {
        await takeTurn(context.signal);
        const { records } = parseMarkets((await client.listQuotes([request.marketId], context.signal)).rows);
        const market = records.find((record) => record.marketId === request.marketId);
        const beganAtMs = market?.openAtMs ?? market?.createdAtMs;
        return beganAtMs === undefined || beganAtMs < second * 1000;
      },
    });
}

/** Undefined without a usable archive. */
async function readCutoff(client: KalshiClient, signal: AbortSignal): Promise<number | undefined> {
  try {
    const cutoffMs = parseVenueTimeMs(fieldOf(await client.getCutoff(signal), 'trades_created_ts'));
    return cutoffMs === undefined ? undefined : Math.ceil(cutoffMs / 1000);
  } catch (error) {
    if (isHttpStatus(error, [401, 403, 404])) return undefined;
    throw error;
  }
}
