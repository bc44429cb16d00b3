import type { PriceRecord } from '../../src/domain/markets/market.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import { writePrices } from '../../src/store/prices/prices.ts';
import {
  forgetUnwatched,
  notePricesAsked,
  noteSymbols,
  type WatchedToken,
  watchedTokens,
} from '../../src/store/prices/token-watch.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { CallContext, Page } from '../../src/venues/port.ts';
import type { TokenAdapter } from '../../src/venues/token-port.ts';
import { runPollOf } from '../polling/polling.ts';
import { defineJob, type JobContext } from '../process/define.ts';

/** Mints whose prices are forgotten at the end of a walk; the rest follow with the next. */
const MAX_FORGOTTEN = 1_000;

interface TokenPage extends Page<PriceRecord> {
  tokens: readonly WatchedToken[];
  /** Symbols by mint; undefined when they were not asked for. */
  symbols: ReadonlyMap<string, string> | undefined;
}

/**
 * Prices of just the mints that active alerts name, a batch per page, the one asked for longest ago first. A mint that
 * is not priced is simply asked for again: its alerts stay active. The symbol comes with the first price, so that
 * whoever fires by it can name it.
 */
export const pollTokens = defineJob('poll-tokens', ({ venue }, context) => {
  const asked: bigint[] = [];
  const currency = context.tokenAdapters.get(venue)?.currency ?? '';
  return runPollOf<TokenAdapter, PriceRecord, TokenPage>(context, context.tokenAdapters, {
    venue,
    kind: 'prices',
    leaseKind: 'tokens',
    fetch: async (adapter, _position, call) => {
      const limit = adapter.maxMintsPerFetch;
      const tokens = await watchedTokens(context.db, { currency, limit, except: asked });
      asked.push(...tokens.map(({ tokenId }) => tokenId));
      const mints = tokens.map(({ mint }) => mint).filter((mint) => adapter.isMint(mint));
      const prices = mints.length === 0 ? NOTHING : await adapter.fetchTokenPrices(mints, call);
      const symbols = await symbolsOf(context, adapter, tokens, call);
      return { ...prices, tokens, symbols, position: null, more: tokens.length === limit };
    },
    prepare: async () => {
      await context.partitions.ensureAroundNow('price_history');
      await context.partitions.ensureAroundNow('observation');
    },
    write: async (tx, records, _adapter, { tokens }) => {
      const idOf = new Map(tokens.map(({ mint, tokenId }) => [mint, tokenId]));
      const known = records.flatMap(({ outcomeId, ...price }) => {
        const tokenId = idOf.get(outcomeId);
        return tokenId === undefined ? [] : [{ ...price, tokenId }];
      });
      const { newer, movedTokenIds } = await writePrices(tx, known);
      return {
        written: newer,
        wake: () => context.producer.wakeStage('evaluate-alerts', shardsOf(movedTokenIds)),
      };
    },
    finish: async (tx, { tokens, symbols, more }) => {
      if (!more) await forgetUnwatched(tx, currency, MAX_FORGOTTEN);
      await notePricesAsked(
        tx,
        tokens.map(({ tokenId }) => tokenId),
      );
      if (symbols === undefined) return;
      const nameless = tokens.filter(({ needsSymbol }) => needsSymbol);
      await noteSymbols(
        tx,
        nameless.map(({ tokenId, mint }) => ({ tokenId, symbol: symbols.get(mint) })),
      );
    },
  });
});

const NOTHING = { records: [], rejected: [] };

/** Symbols are for display only: that they cannot be had is no reason to hold back prices. */
async function symbolsOf(
  context: JobContext,
  adapter: TokenAdapter,
  tokens: readonly WatchedToken[],
  call: CallContext,
): Promise<ReadonlyMap<string, string> | undefined> {
  const mints = tokens.filter(({ needsSymbol, mint }) => needsSymbol && adapter.isMint(mint)).map(({ mint }) => mint);
  if (mints.length === 0) return undefined;
  try {
    return await adapter.fetchTokenSymbols(mints, call);
  } catch (error) {
    if (!(error instanceof VenueError) || error.code === 'aborted') throw error;
    context.log.info({ venue: adapter.venue, err: error }, 'token symbols not read');
    return undefined;
  }
}
