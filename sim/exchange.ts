import { readFile } from 'node:fs/promises';
import { type ExchangeControl, engineControl } from './control.ts';
import { SimControlError } from './errors.ts';
import { FaultBoard, type FaultRequest } from './faults.ts';
import { FEED_PATHS, FeedHub } from './feeds/hub.ts';
import { FEED_HOSTS, type FeedHost } from './feeds/socket-faults.ts';
import { type KalshiKey, PRESET_KEY_ID } from './kalshi/handshake.ts';
import { kalshiRoutes } from './kalshi/routes.ts';
import { limitlessRoutes } from './limitless/routes.ts';
import { LiveClock } from './live-clock.ts';
import { manifoldRoutes } from './manifold/routes.ts';
import { type ExchangeOptions, worldOptions } from './options.ts';
import { clobRoutes } from './polymarket/clob-routes.ts';
import { dataRoutes } from './polymarket/data-routes.ts';
import { gammaRoutes } from './polymarket/gamma-routes.ts';
import { type WalletSource, walletRoutes } from './polymarket/wallet-routes.ts';
import { loadRecordings } from './recorded/recordings.ts';
import { recordedControl, recordedSource } from './recorded/source.ts';
import { CdnCache } from './server/cdn-cache.ts';
import { controlRoutes } from './server/control-routes.ts';
import { DocumentedRates } from './server/documented-rates.ts';
import { FaultyFeed } from './server/faulty-feed.ts';
import { listen } from './server/http-server.ts';
import type { Reply, SimRequest } from './server/reply.ts';
import { RequestLog } from './server/request-log.ts';
import { solanaControlRoute } from './solana/control-route.ts';
import { jupiterRoutes } from './solana/jupiter-routes.ts';
import { type SolanaControl, SolanaNetwork } from './solana/network.ts';
import { rpcRoutes } from './solana/rpc-routes.ts';
import type { VenueSource } from './source.ts';
import { liveSource } from './world/live-source.ts';
import { WalletLedger } from './world/wallet-ledger.ts';
import { World } from './world/world.ts';

export type { LedgerRow, MarketState, SteerRequest } from './control.ts';
export { PortTakenError, RecordingsError } from './errors.ts';
export type { BadMembers, FaultHost, FaultRequest, FeedFault } from './faults.ts';
export type { SocketFault } from './feeds/socket-faults.ts';
export type { ExchangeOptions } from './options.ts';
export type { SimRequest } from './server/reply.ts';
export type { RequestRecord } from './server/request-log.ts';

/** A running simulated exchange: three hosts under prefixes of one address, and the control methods. */
export interface Exchange extends ExchangeControl {
  readonly url: string;
  readonly port: number;
  readonly gammaUrl: string;
  readonly clobUrl: string;
  readonly dataUrl: string;
  /** With the version path. */
  readonly manifoldUrl: string;
  readonly limitlessUrl: string;
  /** With the version path. */
  readonly kalshiUrl: string;
  /** Token prices and symbols. */
  readonly jupiterUrl: string;
  /** The JSON-RPC node. */
  readonly solanaUrl: string;
  /** The WebSocket addresses of the feeds; recordings have none. */
  readonly feedUrls: Readonly<Record<FeedHost, string>>;
  /** A new API key of Kalshi, which its feed requires. */
  createKalshiKey(): KalshiKey;
  expireKalshiKey(id: string): void;
  /** The number of open connections of a feed. */
  feedConnections(host: FeedHost): number;
  readonly solana: SolanaControl;
  readonly seed: number;
  close(): Promise<void>;
}

/** About three months, as the venue plans. */
const KALSHI_LIVE_HOURS = 90 * 24;

interface Backend {
  readonly source: VenueSource;
  readonly wallets: WalletSource;
  readonly manifold: (request: SimRequest) => Reply | undefined;
  readonly limitless: (request: SimRequest) => Reply | undefined;
  readonly kalshi: (request: SimRequest) => Reply | undefined;
  readonly control: Omit<ExchangeControl, 'addFault' | 'faults' | 'clearFaults' | 'requests'>;
  /** Undefined for recordings. */
  readonly world: World | undefined;
  /** Calls this after each change of the clock. */
  onPlayed(published: () => void): void;
  start(): void;
  stop(): void;
  beforeAnswer(): void;
}

/**
 * Plays the history (or reads the recordings), then listens.
 * @throws PortTakenError when the port is in use, RecordingsError when the folder of recordings cannot be read
 */
export async function startExchange(options: ExchangeOptions = {}): Promise<Exchange> {
  const host = options.host ?? '127.0.0.1';
  const seed = options.seed ?? 1;
  const backend = options.recorded === undefined ? liveBackend(options) : await recordedBackend(options.recorded, seed);
  const faults = new FaultBoard(seed, backend.control.second);
  const log = new RequestLog();
  const hub = backend.world === undefined ? undefined : new FeedHub(backend.world, faults, seed);
  const { kalshiKeyFile } = options;
  if (kalshiKeyFile !== undefined) hub?.kalshiKeys.accept(PRESET_KEY_ID, await readFile(kalshiKeyFile, 'utf8'));
  const publish = () => hub?.publish();
  backend.onPlayed(publish);
  const control: ExchangeControl = {
    ...publishing(backend.control, publish),
    addFault: (request) => addFault(faults, hub, request),
    faults: () => faults.list(),
    clearFaults: (id) => faults.clear(id),
    requests: () => log.list(),
  };
  const cdn = new CdnCache(control.second);
  const trades = dataRoutes(backend.source.trades, cdn);
  const wallets = walletRoutes(backend.wallets, cdn);
  const solana = new SolanaNetwork({
    seed,
    nowSecond: control.second,
    hasTraffic: options.solanaTraffic,
    v1Share: options.solanaV1Share,
  });
  const controlSolana = solanaControlRoute(solana);
  const controlMarkets = controlRoutes(control);
  const routes = {
    gamma: gammaRoutes(backend.source.gamma),
    clob: clobRoutes(backend.source.clob),
    data: (request: SimRequest) => trades(request) ?? wallets(request),
    manifold: backend.manifold,
    limitless: backend.limitless,
    kalshi: backend.kalshi,
    jupiter: jupiterRoutes(solana),
    solana: rpcRoutes(solana),
    _sim: (request: SimRequest) => controlSolana(request) ?? controlMarkets(request),
  };
  const { beforeAnswer } = backend;
  const { onAnswered = () => undefined } = options;
  const cache = new CdnCache(control.second);
  const rates = options.enforcesRates ? new DocumentedRates(() => performance.now()) : undefined;
  const feed = new FaultyFeed(seed, { end: () => control.ledger(0, 0).nextIndex, second: control.second });
  const upgrade = hub && ((...handshake: Parameters<FeedHub['upgrade']>) => hub.upgrade(...handshake));
  const parts = { routes, faults, log, delays: options, rates, cache, feed, beforeAnswer, onAnswered, upgrade };
  const server = await listen(parts, host, options.port ?? 0);
  backend.start();
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${server.port}`;
  return {
    ...control,
    url,
    port: server.port,
    gammaUrl: `${url}/gamma`,
    clobUrl: `${url}/clob`,
    dataUrl: `${url}/data`,
    manifoldUrl: `${url}/manifold/v0`,
    limitlessUrl: `${url}/limitless`,
    kalshiUrl: `${url}/kalshi/trade-api/v2`,
    jupiterUrl: `${url}/jupiter`,
    solanaUrl: `${url}/solana`,
    feedUrls: feedUrlsOf(url),
    createKalshiKey: () => feedsOf(hub).kalshiKeys.create(),
    expireKalshiKey: (id) => feedsOf(hub).kalshiKeys.expire(id),
    feedConnections: (name) => hub?.connections(name) ?? 0,
    solana,
    seed,
    close: async () => {
      backend.stop();
      hub?.close();
      await server.close();
    },
  };
}

/** Each control that changes the world announces the changes at once. */
function publishing(control: Backend['control'], publish: () => void): Backend['control'] {
  const after =
    <Args extends unknown[], Result>(act: (...args: Args) => Result) =>
    (...args: Args): Result => {
      const result = act(...args);
      publish();
      return result;
    };
  const { forcePrice, releasePrice, steer, resume, step, idle } = control;
  return {
    ...control,
    forcePrice: after(forcePrice),
    releasePrice: after(releasePrice),
    steer: after(steer),
    resume: after(resume),
    step: after(step),
    idle: after(idle),
  };
}

/** A restart is over at once. */
function addFault(faults: FaultBoard, hub: FeedHub | undefined, request: FaultRequest) {
  const fault = faults.add(request);
  if (request.socket?.how !== 'restart') return fault;
  faults.clear(fault.id);
  const { host } = request;
  hub?.restart(
    FEED_HOSTS.filter((name) => host === '*' || host === name || (host === 'polymarket' && name === 'clob')),
  );
  return fault;
}

function feedsOf(hub: FeedHub | undefined): FeedHub {
  if (hub === undefined) throw new SimControlError(409, 'recorded_mode', 'recordings have no feeds');
  return hub;
}

function feedUrlsOf(url: string): Record<FeedHost, string> {
  const address = url.replace(/^http/, 'ws');
  return Object.fromEntries(FEED_HOSTS.map((name) => [name, `${address}${FEED_PATHS[name]}`])) as Record<
    FeedHost,
    string
  >;
}

function liveBackend(options: ExchangeOptions): Backend {
  const wallMs = () => Date.now();
  const world = new World(worldOptions(options, Math.floor(wallMs() / 1000)));
  world.playHistory();
  const clock = new LiveClock(world, wallMs);
  if (options.paused) clock.hold();
  return {
    source: liveSource(world),
    wallets: new WalletLedger(world),
    manifold: manifoldRoutes(world),
    limitless: limitlessRoutes(world),
    kalshi: kalshiRoutes(world, {
      cutoffSecond: world.options.nowSecond - Math.round((options.kalshiLiveHours ?? KALSHI_LIVE_HOURS) * 3600),
      showsUnopened: options.kalshiUnopened ?? false,
      combinations: options.kalshiCombinations ?? 3,
      hasEventCategory: options.kalshiEventCategory ?? true,
      eventTickers: options.kalshiEventTickers ?? 'served',
    }),
    control: engineControl(world, clock),
    world,
    onPlayed: (published) => {
      clock.onPlayed = published;
    },
    start: () => clock.start(),
    stop: () => clock.stop(),
    beforeAnswer: () => clock.catchUp(),
  };
}

async function recordedBackend(folder: string, seed: number): Promise<Backend> {
  const recordings = await loadRecordings(folder);
  const idle = (): void => undefined;
  return {
    source: recordedSource(recordings),
    wallets: { activity: () => undefined, positions: () => undefined },
    manifold: () => undefined,
    limitless: () => undefined,
    kalshi: () => undefined,
    control: recordedControl(recordings, seed),
    world: undefined,
    onPlayed: idle,
    start: idle,
    stop: idle,
    beforeAnswer: idle,
  };
}
