import type { PriceRecord } from '../../src/domain/markets/market.ts';
import { failureFields } from '../../src/observe/failures.ts';
import { oncePerOwner } from '../../src/store/db/batcher.ts';
import {
  forgetUnwatched,
  notePricesAsked,
  noteSymbols,
  type WatchedToken,
  watchedTokens,
} from '../../src/store/prices/token-watch.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { CallContext } from '../../src/venues/port.ts';
import type { TokenAdapter } from '../../src/venues/token-port.ts';
import { priceStore, type SweptPrices } from '../ingest/price-store.ts';
import { failedBatch, type PageSource, type RequestedPage, runPoll, walkPages } from '../polling/poll.ts';
import { defineJob, type JobContext } from '../process/define.ts';

/** Mints whose prices one walk deletes at its end. The next walk deletes the rest. */
const MAX_FORGOTTEN = 1_000;
/** Causes of failed requests for symbols that have their line, by venue, since the latest success. */
const loggedCauses = oncePerOwner((_db: object) => new Map<string, Set<string>>());

interface TokenPage extends RequestedPage<PriceRecord> {
  tokens: readonly WatchedToken[];
  /** Symbols by mint; undefined when the page requested none. */
  symbols: ReadonlyMap<string, string> | undefined;
}

/**
 * Polls the prices of the mints that active alerts name, one batch per page, the least recently requested mints first. A mint
 * without a price is requested again, and its alerts stay active. Mints of a batch without an answer count as requested too, so
 * that the next tick begins with others. The symbol comes with the first price, so that the event of an
 * alert can name it.
 */
export const pollTokens = defineJob('poll-tokens', ({ venue }, context) => {
  const requested: bigint[] = [];
  const open = (adapter: TokenAdapter): PageSource<PriceRecord, SweptPrices, TokenPage> => ({
    ...priceStore(context),
    async fetch(_position, call) {
      const { currency, maxMintsPerFetch: limit } = adapter;
      const tokens = await watchedTokens(context.db, { currency, limit, except: requested });
      requested.push(...tokens.map(({ tokenId }) => tokenId));
      const mints = tokens.map(({ mint }) => mint).filter((mint) => adapter.isMint(mint));
      const prices =
        mints.length === 0
          ? { records: [], rejected: [], isIdle: true as const }
          : await adapter.fetchTokenPrices(mints, call).catch(failedBatch);
      const symbols = 'fault' in prices ? undefined : await symbolsOf(context, adapter, tokens, call);
      const tokenIdOf = new Map(tokens.map(({ mint, tokenId }) => [mint, tokenId]));
      return { ...prices, tokenIdOf, tokens, symbols, position: null, more: tokens.length === limit };
    },
    async finish(tx, { tokens, symbols, more }) {
      const forgotten = more ? [] : await forgetUnwatched(tx, adapter.currency, MAX_FORGOTTEN);
      context.confirmations?.forget(forgotten);
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
  return runPoll(context, { venue, lease: 'tokens', adapters: context.tokenAdapters }, (adapter, start) =>
    walkPages(context, open(adapter), start),
  );
});

/**
 * Symbols are for display only, so prices are stored without them when their request fails. Each cause of failures has one line until
 * symbols are read again.
 */
async function symbolsOf(
  context: JobContext,
  adapter: TokenAdapter,
  tokens: readonly WatchedToken[],
  call: CallContext,
): Promise<ReadonlyMap<string, string> | undefined> {
  const mints = tokens.filter(({ needsSymbol, mint }) => needsSymbol && adapter.isMint(mint)).map(({ mint }) => mint);
  if (mints.length === 0) return undefined;
  const { venue } = adapter;
  const logged = loggedCauses(context.db);
  try {
    const symbols = await adapter.fetchTokenSymbols(mints, call);
    logged.delete(venue);
    return symbols;
  } catch (error) {
    if (!(error instanceof VenueError) || error.code === 'aborted') throw error;
    const cause = `${error.code} ${error.statusCode ?? ''}`;
    const causes = logged.get(venue) ?? new Set();
    context.log[causes.has(cause) ? 'debug' : 'info']({ venue, ...failureFields(error) }, 'token symbols not read');
    logged.set(venue, causes.add(cause));
    return undefined;
  }
}
