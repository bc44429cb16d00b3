import { z } from 'zod';
import type { VenueHttpSettings } from '../http/http.ts';
import type { VenueObserver } from '../observer.ts';
import { createReport } from '../report.ts';
import type { WalletAdapter } from '../wallet-port.ts';
import { POLYMARKET } from './client.ts';
import { type ActivityWalkSettings, readActivity } from './walk-wallets.ts';
import { parseActivity } from './wallet-activity.ts';
import { createWalletClient } from './wallet-client.ts';
import { parsePositions } from './wallet-positions.ts';

interface PolymarketWalletOptions {
  /** The address of the Data API. */
  url: string;
  observer?: VenueObserver;
  http?: VenueHttpSettings;
  activity?: Partial<ActivityWalkSettings>;
}

const ACTIVITY_SETTINGS: ActivityWalkSettings = { overlapSeconds: 300, maxPagesPerRead: 10 };

const nextPage = z.object({ version: z.literal('v2'), cursor: z.string() });

/** Wallets of Polymarket: activity and positions of the public Data API. Position formats are private to this folder. */
export function createPolymarketWallets(options: PolymarketWalletOptions): WalletAdapter {
  const client = createWalletClient(options);
  const report = createReport(POLYMARKET, options.observer);
  const settings = { ...ACTIVITY_SETTINGS, ...options.activity };
  return {
    venue: POLYMARKET,

    async pollActivity({ address, sinceMs }, position, context) {
      const nowMs = context.now();
      const { rows, truncated, ...page } = await readActivity(position, { sinceMs, nowMs, settings }, (start, next) =>
        client.listActivity(address, start, next, { nowMs, signal: context.signal }),
      );
      report.truncated('wallets', truncated);
      return { ...report.counted('wallets', rows.length, parseActivity(rows, nowMs)), ...page };
    },

    async pollBalances(address, position, context) {
      const from = nextPage.safeParse(position);
      const next = from.success ? from.data : undefined;
      const answer = await client.listPositions(address, next, { nowMs: context.now(), signal: context.signal });
      return {
        ...parsePositions(answer.rows),
        position: answer.next ?? null,
        more: answer.next !== undefined,
      };
    },

    close: () => client.close(),
  };
}
