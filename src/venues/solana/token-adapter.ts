import type { PriceRecord } from '../../domain/markets/market.ts';
import { VENUES } from '../../domain/markets/venue.ts';
import { isPublicKey } from '../../domain/values/base58.ts';
import { observedAtMs } from '../http/age.ts';
import { rejectMembers, unreadOf } from '../http/member-batches.ts';
import type { VenueObserver } from '../observer.ts';
import { refuseUnreadable } from '../rejection.ts';
import { createReport } from '../report.ts';
import type { TokenAdapter } from '../token-port.ts';
import { SOLANA, type SolanaHttpSettings } from './hosts.ts';
import { createJupiterClient } from './jupiter-client.ts';
import { parseTokenPrices } from './parse-token-prices.ts';
import { parseTokenSymbols } from './parse-token-symbols.ts';
import { createSeenSlots } from './seen-slots.ts';

/** The limits of one Price v3 request and of one Tokens v2 search, mints. */
const MAX_PRICES = 50;
const MAX_SYMBOLS = 100;

/** Token prices and symbols from Jupiter. A price has the time of the answer; Jupiter gives only the slot of the last swap. */
export function createSolanaTokens(options: {
  jupiter: string;
  jupiterKey?: string;
  jupiterPerSecond?: number;
  http?: SolanaHttpSettings;
  observer?: VenueObserver;
}): TokenAdapter {
  const { jupiter, jupiterKey, jupiterPerSecond, http, observer } = options;
  const client = createJupiterClient({
    url: jupiter,
    ...(jupiterKey !== undefined && { key: jupiterKey }),
    ...(jupiterPerSecond !== undefined && { requestsPerSecond: jupiterPerSecond }),
    ...(http && { http }),
    ...(observer && { observer }),
  });
  const slots = createSeenSlots();
  const report = createReport(SOLANA, observer);
  const prices = client.members('token_prices');
  const searches = client.members('token_search');
  return {
    venue: SOLANA,
    currency: VENUES.solana.currency,
    isMint: isPublicKey,
    maxMintsPerFetch: MAX_PRICES,

    async fetchTokenPrices(mints, context) {
      const wanted = [...new Set(mints)].filter(isPublicKey);
      if (wanted.length === 0) return { records: [], rejected: [] };
      const asked = await prices.ask(wanted, (each, request) => client.getPrices(each, context.signal, request), {
        size: MAX_PRICES,
      });
      const nowMs = context.now();
      const parts = asked.answers.map(({ members, answer }) => {
        const { quotes, rejected } = parseTokenPrices(answer.entries, members);
        const asOfMs = observedAtMs(answer, nowMs);
        return { quotes: quotes.map((quote) => ({ ...quote, asOfMs })), rejected };
      });
      const quotes = parts.flatMap((part) => part.quotes);
      const rejected = parts.flatMap((part) => part.rejected);
      refuseUnreadable(SOLANA, 'price', quotes.length + rejected.length, rejected);
      const records = quotes
        .filter(({ mint, slot }) => slot === undefined || slots.isCurrent(mint, slot, nowMs))
        .map(({ mint, price, asOfMs }): PriceRecord => ({ outcomeId: mint, asOfMs, price }));
      const skipped = Array(quotes.length - records.length).fill('stale_slot');
      rejected.push(...rejectMembers('prices', asked.refused, nowMs));
      const batch = report.counted('prices', quotes.length + rejected.length, { records, rejected, skipped });
      return { ...batch, ...unreadOf(asked) };
    },

    async fetchTokenSymbols(mints, context) {
      const wanted = [...new Set(mints)].filter(isPublicKey);
      const symbols = new Map<string, string>();
      const asked = await searches.ask(wanted, (part, request) => client.searchTokens(part, context.signal, request), {
        size: MAX_SYMBOLS,
      });
      if (asked.fault) throw asked.fault;
      for (const { members, answer } of asked.answers) {
        for (const [mint, symbol] of parseTokenSymbols(answer, members)) symbols.set(mint, symbol);
      }
      return symbols;
    },

    close: () => client.close(),
  };
}
