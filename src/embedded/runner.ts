import { resolve } from 'node:path';
import { type Config, loadConfig } from '../config/config.ts';
import { DATABASE_POOL_SIZE, type DatabasePools } from '../config/pools.ts';
import { environmentOf, mayRead } from '../config/process-secrets.ts';
import type { Logger } from '../observe/logger.ts';
import { PortTakenError } from '../runtime/errors.ts';
import { freePort, isPortFree, nextFreePort } from './free-port.ts';
import { localSecretsKeys } from './local-secrets.ts';
import { hasFewCores } from './machine.ts';
import { type ProcfileEntry, parseProcfile } from './procfile.ts';
import { createSupervisor, type Outcome, type SupervisorLimits } from './supervisor.ts';

/** The Procfile's name of the embedded database: started first, stopped last, skipped with a DATABASE_URL. */
const DATABASE = 'db';
/** Companions end after the service that connects to them; the database ends last. */
const COMPANION_WAVE = 1;
const DATABASE_WAVE = 2;
/** The database ends by itself within 10 s (postgres.ts); a kill would leave its server running. */
const DATABASE_STOP_MS = 12_000;
/** A placeholder for the URL that is known once the embedded database runs, so that the other settings can be checked before. */
const URL_TO_COME = 'postgres://embedded/oddswire';

/** Clients see their work first. Each further process that loads at the same time delays it. */
const FIRST: ReadonlySet<string> = new Set(['api', 'poller']);
/** The other processes start after this time at the latest, because the first ones may fail. */
const OTHERS_WAIT_MS = 10_000;

/** A quarter of Node's default: the memory of short-lived objects is three times this. */
const YOUNG_GENERATION = '--max-semi-space-size=4';
/**
 * Pages of a venue are large, and the API reads every change: with 4 MB a sixth of the poller's time and a quarter of the API's is garbage
 * collection; with 16 MB a fourteenth of the poller's, and the API takes a tenth less CPU.
 */
const YOUNG_OF_BUSY = '--max-semi-space-size=16';
/** A feed of a hundred messages per second fills 4 MB twice per second, and each collection keeps a tenth for long. */
const YOUNG_OF_FEEDS = '--max-semi-space-size=8';
const YOUNG_OF: Readonly<Record<string, string>> = {
  api: YOUNG_OF_BUSY,
  poller: YOUNG_OF_BUSY,
  streamer: YOUNG_OF_FEEDS,
};
/** V8 has four threads for its collections and compilations: on two cores three of them find no core, and each takes memory. */
const ONE_HELPER = '--v8-pool-size=1';

type Environment = Readonly<Record<string, string | undefined>>;

/** A process beside the service. */
export interface Companion extends ProcfileEntry {
  /** Starts after the first processes of the service, and not before the database. */
  readonly isOfOthers?: true;
}

export interface RunnerOptions {
  /** The base folder of the commands of the Procfile. */
  readonly root: string;
  readonly procfileText: string;
  /** Its paths are absolute, because the processes run in `root`. */
  readonly environment: Environment;
  readonly dataDir: string;
  readonly log: Logger;
  readonly onLine: (name: string, line: string, isError: boolean) => void;
  /** Stops everything when it fires. */
  readonly signal: AbortSignal;
  /** Runs the processes of the service in one. A process of another name keeps its own. */
  readonly isSmall?: boolean;
  /** Processes beside the service; they end after it. */
  readonly companions?: readonly Companion[];
  /** Called once the API and the poller have been started; the API may still be waiting for the migrations. */
  readonly onStarted?: (apiUrl: string) => void;
  /** Called at each step of the start-up, with a text for a person. */
  readonly onStep?: (text: string) => void;
  readonly limits?: Partial<SupervisorLimits>;
  /** The processes beside the API and the poller also wait for this. */
  readonly othersAfter?: Promise<void>;
  /** See OTHERS_WAIT_MS; tests shorten it. */
  readonly othersWaitMs?: number;
}

interface Plan {
  readonly environment: Environment;
  readonly apiUrl: string;
  /** METRICS_PORT of each service. */
  readonly metricsPorts: ReadonlyMap<string, number>;
}

/**
 * Runs the processes of a Procfile until the signal fires or one of them reports a permanent fault; resolves when all have
 * ended. When it throws, nothing has been started.
 * @throws ConfigError, PortTakenError, ProcfileError
 */
export async function runProcesses(options: RunnerOptions): Promise<Outcome> {
  const { root, log, onLine, signal, companions = [] } = options;
  const entries = parseProcfile(options.procfileText);
  const services = entries.filter(({ name }) => name !== DATABASE);
  const database = options.environment['DATABASE_URL'] ? undefined : entries.find(({ name }) => name === DATABASE);
  const plan = await preflight(options, services, database !== undefined);
  if (signal.aborted) return {};

  let servedUrl: string | undefined;
  let hasMoved = false;
  let others: Others | undefined;
  const supervisor = createSupervisor({
    cwd: root,
    log,
    onLine,
    onMessage(name, message) {
      const url = name === DATABASE ? readyUrl(message) : null;
      if (url !== null) databaseIsUp(url);
      if (isStarted(message)) others?.startedOf(name);
    },
    ...(options.limits !== undefined && { limits: options.limits }),
  });

  function databaseIsUp(url: string): void {
    if (servedUrl === undefined) {
      servedUrl = url;
      options.onStep?.('the database is ready');
      startServices({ ...plan.environment, DATABASE_URL: url });
    } else if (servedUrl !== url) {
      // Its port was taken while it was down, and the other processes have the old address.
      log.error('the embedded database restarted at another address; restart oddswire');
      hasMoved = true;
      stop();
    }
  }

  function startServices(environment: Environment): void {
    const isPart = ({ name }: ProcfileEntry) => options.isSmall === true && Object.hasOwn(DATABASE_POOL_SIZE, name);
    const [first, later] = inTwo(services, (service) => isPart(service) || FIRST.has(service.name));
    options.onStep?.(
      `starting ${[first, later]
        .filter(({ length }) => length > 0)
        .map(namesOf)
        .join(', then ')}`,
    );
    const portOf = ({ name }: ProcfileEntry) => String(plan.metricsPorts.get(name) ?? 0);
    const parts = services.filter(isPart);
    if (parts.length > 0) {
      const words = parts.map((part) => `${part.name}=${portOf(part)}`);
      const command = ['node', 'dist/small/main.js', ...words] as const;
      supervisor.start({ name: 'small', command, environment: environmentOfAll(parts, environment) });
    }
    const start = (service: ProcfileEntry) => {
      const { name, command } = service;
      const own = {
        ...environmentOf(name, environment),
        METRICS_PORT: portOf(service),
        ...(YOUNG_OF[name] !== undefined && { NODE_OPTIONS: optionsOf(YOUNG_OF[name], options.environment) }),
      };
      supervisor.start({ name, command, environment: own });
    };
    const own = first.filter((each) => !isPart(each));
    own.forEach(start);
    others = startAfter(own, options, () => {
      companions.filter(({ isOfOthers }) => isOfOthers).forEach(startCompanion);
      later.forEach(start);
    });
    options.onStarted?.(plan.apiUrl);
  }

  function startCompanion({ name, command }: Companion): void {
    supervisor.start({ name, command, environment: plan.environment, stopWave: COMPANION_WAVE });
  }

  function stop(): void {
    supervisor.stop().catch((error: unknown) => log.error({ err: error }, 'stopping failed'));
  }

  signal.addEventListener('abort', stop, { once: true });
  const early = companions.filter(({ isOfOthers }) => isOfOthers !== true);
  if (early.length > 0) options.onStep?.(`starting ${namesOf(early)}`);
  early.forEach(startCompanion);
  if (database === undefined) startServices(plan.environment);
  else {
    options.onStep?.('starting the embedded database; the first start creates it');
    supervisor.start({
      ...database,
      environment: environmentOf(DATABASE, plan.environment),
      stopWave: DATABASE_WAVE,
      stopMs: DATABASE_STOP_MS,
    });
  }
  const outcome = await supervisor.finished;
  signal.removeEventListener('abort', stop);
  others?.drop();
  return hasMoved ? { fatal: { name: DATABASE } } : outcome;
}

/** The processes that wait for others. */
interface Others {
  readonly startedOf: (name: string) => void;
  readonly drop: () => void;
}

/**
 * Calls `start` when each of the first processes has reported its start and `othersAfter` is resolved, at once without first processes, and
 * after a limit at the latest.
 */
function startAfter(
  first: readonly ProcfileEntry[],
  { othersAfter = Promise.resolve(), othersWaitMs = OTHERS_WAIT_MS }: RunnerOptions,
  start: () => void,
): Others {
  const awaited = new Set(first.map(({ name }) => name));
  let isDone = false;
  const finish = () => {
    clearTimeout(timer);
    if (!isDone) start();
    isDone = true;
  };
  const timer = setTimeout(finish, othersWaitMs);
  const startedOf = (name: string) => {
    awaited.delete(name);
    if (awaited.size === 0) othersAfter.then(finish, finish);
  };
  if (first.length === 0) finish();
  return { startedOf, drop: () => clearTimeout(timer) };
}

function inTwo<T>(all: readonly T[], isFirst: (one: T) => boolean): [T[], T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))];
}

function namesOf(entries: readonly ProcfileEntry[]): string {
  return entries.map(({ name }) => name).join(', ');
}

/** An option of the user comes later, and wins. */
function optionsOf(young: string, { NODE_OPTIONS: given }: Environment): string {
  return [young, hasFewCores() && ONE_HELPER, given].filter(Boolean).join(' ');
}

/** Six processes in one wait for the same core, so more connections only take memory: a session has up to 17 MB. */
function defaultPools({ isSmall }: RunnerOptions, isEmbedded: boolean): DatabasePools | undefined {
  if (isSmall === true) return 'quarter';
  return isEmbedded && hasFewCores() ? 'half' : undefined;
}

/** The environment without the secrets that none of the parts needs. Each part takes its own. */
function environmentOfAll(parts: readonly ProcfileEntry[], environment: Environment): Environment {
  const isRead = (variable: string) => parts.some(({ name }) => mayRead(name, variable));
  return Object.fromEntries(Object.entries(environment).filter(([variable]) => isRead(variable)));
}

/** Finds faults that would stop a process right after its start, before any process starts. */
async function preflight(
  options: RunnerOptions,
  services: readonly ProcfileEntry[],
  isEmbedded: boolean,
): Promise<Plan> {
  const dataDir = resolve(options.dataDir);
  const given: Environment = { ...options.environment, DATA_DIR: dataDir };
  const secretsKeys = given['SECRETS_KEYS'] || (isEmbedded ? await localSecretsKeys(dataDir, options.log) : undefined);
  const nodeOptions = optionsOf(YOUNG_GENERATION, given);
  const pools = given['DATABASE_POOLS'] || defaultPools(options, isEmbedded);
  const own = { SECRETS_KEYS: secretsKeys, NODE_OPTIONS: nodeOptions, DATABASE_POOLS: pools };
  const environment = { ...given, ...own };
  const config = loadConfig(isEmbedded ? { ...environment, DATABASE_URL: URL_TO_COME } : environment);
  const { host } = config.http;
  if (config.http.port !== 0 && !(await isPortFree(config.http.port, host))) {
    throw new PortTakenError(host, config.http.port, 'PORT');
  }
  const port = config.http.port || (await freePort(host));
  return {
    environment: { ...environment, PORT: String(port) },
    apiUrl: `http://${reachableHost(host)}:${port}`,
    metricsPorts: await assignMetricsPorts(config, services, port),
  };
}

/** The API gets METRICS_PORT, the others the next free ports in the order of the Procfile. */
async function assignMetricsPorts(
  { metrics }: Config,
  services: readonly ProcfileEntry[],
  apiPort: number,
): Promise<ReadonlyMap<string, number>> {
  const ports = new Map<string, number>();
  const taken = new Set([apiPort]);
  let next = metrics.port;
  for (const { name } of services) {
    const port = metrics.port === 0 ? await freePort(metrics.host) : await nextFreePort(next, metrics.host, taken);
    ports.set(name, port);
    taken.add(port);
    next = port + 1;
  }
  return ports;
}

/** The address to connect to for an address to listen on. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

/** `{type: 'started'}`, the message of a process that has started. */
function isStarted(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'type' in message && message.type === 'started';
}

/** `{type: 'ready', url}`, the message of the database process. */
function readyUrl(message: unknown): string | null {
  if (typeof message !== 'object' || message === null || !('type' in message) || !('url' in message)) return null;
  return message.type === 'ready' && typeof message.url === 'string' ? message.url : null;
}
