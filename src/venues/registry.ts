import type { VenueName } from '../domain/markets/venue.ts';
import { OddswireError } from '../domain/values/errors.ts';
import type { OpenLedger } from './http/rate-ledger.ts';
import { createKalshiAdapter } from './kalshi/adapter.ts';
import type { KalshiKey } from './kalshi/feed/key.ts';
import { createLimitlessAdapter } from './limitless/adapter.ts';
import { createManifoldAdapter } from './manifold/adapter.ts';
import type { VenueObserver } from './observer.ts';
import { createPolymarketAdapter } from './polymarket/adapter.ts';
import type { PolymarketUrls } from './polymarket/client.ts';
import { createPolymarketWallets } from './polymarket/wallet-adapter.ts';
import type { VenueAdapter } from './port.ts';
import type { SolanaHosts } from './solana/hosts.ts';
import { createSolanaTokens } from './solana/token-adapter.ts';
import { createSolanaWallets } from './solana/wallet-adapter.ts';
import type { TokenAdapter } from './token-port.ts';
import type { WalletAdapter } from './wallet-port.ts';

/** The addresses of the hosts by venue; each adapter reads its own entry. */
interface VenueUrls {
  readonly polymarket: Readonly<PolymarketUrls>;
  readonly kalshi: string;
  readonly manifold: string;
  /** `perSecond`: the request rate, if it is not the default. */
  readonly limitless: { readonly api: string; readonly perSecond?: number };
  readonly solana: Readonly<SolanaHosts>;
}

interface Making {
  urls: VenueUrls;
  observer?: VenueObserver;
  /** Opens the ledgers of the hosts' request budgets; the default is ledgers in memory. */
  openLedger?: OpenLedger;
  kalshiKey?: KalshiKey;
}

/** Constructors of one kind of adapter; undefined where the configuration disables the adapter. */
type Makers<Adapter> = Readonly<Partial<Record<VenueName, (making: Making) => Adapter | undefined>>>;

/** The rest of oddswire knows venues only from here: one line for each kind of adapter of a venue. */
const MARKETS: Makers<VenueAdapter> = {
  polymarket: (making) => createPolymarketAdapter({ urls: making.urls.polymarket, ...sharedOf(making) }),
  kalshi: ({ kalshiKey: key, ...making }) =>
    createKalshiAdapter({ url: making.urls.kalshi, ...sharedOf(making), ...(key && { key }) }),
  manifold: (making) => createManifoldAdapter({ url: making.urls.manifold, ...sharedOf(making) }),
  limitless: (making) =>
    createLimitlessAdapter({ url: making.urls.limitless.api, ...sharedOf(making, making.urls.limitless.perSecond) }),
};

const WALLETS: Makers<WalletAdapter> = {
  polymarket: (making) => createPolymarketWallets({ url: making.urls.polymarket.data, ...sharedOf(making) }),
  solana: (making) =>
    making.urls.solana.rpc === undefined
      ? undefined
      : createSolanaWallets({ url: making.urls.solana.rpc, ...sharedOf(making) }),
};

const TOKENS: Makers<TokenAdapter> = {
  solana: (making) => createSolanaTokens({ ...making.urls.solana, ...sharedOf(making) }),
};

/** The options that all adapters have. */
function sharedOf({ observer, openLedger }: Making, requestsPerSecond?: number) {
  const http = { ...(openLedger && { openLedger }), ...(requestsPerSecond !== undefined && { requestsPerSecond }) };
  return { ...(observer && { observer }), http };
}

const MAKERS = [MARKETS, WALLETS, TOKENS];

interface AdapterOptions extends Making {
  venues: readonly string[];
}

/**
 * The market adapters of these venues by name. They hold sockets: `close()` each.
 * @throws OddswireError `unknown_venue` that lists the known ones.
 */
export function createAdapters(options: AdapterOptions): Map<string, VenueAdapter> {
  return make(MARKETS, options);
}

/** The same for venues with wallet adapters; others are absent. */
export function createWalletAdapters(options: AdapterOptions): Map<string, WalletAdapter> {
  return make(WALLETS, options);
}

/** The same for venues that price tokens by mint; others are absent. */
export function createTokenAdapters(options: AdapterOptions): Map<string, TokenAdapter> {
  return make(TOKENS, options);
}

function make<Adapter>(makers: Makers<Adapter>, options: AdapterOptions): Map<string, Adapter> {
  const unknown = options.venues.filter((venue) => !isKnown(venue));
  if (unknown.length > 0) {
    const known = [...new Set(MAKERS.flatMap((each) => Object.keys(each)))].join(', ');
    throw new OddswireError('unknown_venue', `unknown venue ${unknown.join(', ')}; known: ${known}`);
  }
  const adapters = new Map<string, Adapter>();
  for (const venue of options.venues.filter(isKnown)) {
    const adapter = makers[venue]?.(options);
    if (adapter !== undefined) adapters.set(venue, adapter);
  }
  return adapters;
}

function isKnown(venue: string): venue is VenueName {
  return MAKERS.some((makers) => Object.hasOwn(makers, venue));
}
