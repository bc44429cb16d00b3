import { ROLES, STREAMER } from '../../../src/queues/jobs.ts';
import {
  type CallOptions,
  callTo,
  OddswireProcess,
  type ProcessListener,
  type ProcessName,
  readFrom,
  type Surroundings,
  type SystemOptions,
  startSurroundings,
} from './system.ts';

/** A process that may be one of several of its name. */
export interface Member {
  readonly process: OddswireProcess;
  /** The address of an API, null for a worker; changes with a restart. */
  address: string | null;
}

/** Several processes of each name on one database, with an exchange and a receiver in this process. */
export interface Fleet extends Omit<Surroundings, 'close'> {
  readonly members: readonly Member[];
  membersOf(name: ProcessName): readonly Member[];
  /** The addresses of the APIs, in the order of their start. */
  apis(): string[];
  /** A market-data call to the APIs in turn; throws unless it succeeds. */
  read<T>(path: string): Promise<T>;
  /** An account call to the APIs in turn; throws unless it succeeds. */
  call<T>(method: string, path: string, body?: unknown, options?: CallOptions): Promise<T>;
  /** Restarts an ended member. */
  start(member: Member): Promise<void>;
  /** Graceful end of all running processes; the exit codes. Later calls join the first. */
  stop(): Promise<(number | null)[]>;
}

export interface FleetOptions extends SystemOptions {
  /** The number of processes of each name. */
  counts: Readonly<Record<ProcessName, number>>;
  /** Variables of one name only. */
  environmentOf?: Partial<Record<ProcessName, Record<string, string>>>;
  /** The time limit of a start. */
  startLimitMs?: number;
  /** The listener of the process of a name with this number, from 0. */
  listenerOf?(name: ProcessName, number: number): ProcessListener;
}

/** The same number of every process; no streamer, so that the polls are proven alone. */
export function ofEach(count: number): Record<ProcessName, number> {
  return { api: count, poller: count, aggregator: count, alerter: count, deliverer: count, streamer: 0 };
}

/** Starts all of them at once. When one does not start, all are ended again. */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const surroundings = await startSurroundings(options);
  const names: ProcessName[] = ['api', ...ROLES, STREAMER];
  const members = names.flatMap((name) =>
    Array.from({ length: options.counts[name] }, (_, number): Member => {
      const environment = { ...surroundings.environment, ...options.environmentOf?.[name] };
      return { process: new OddswireProcess(name, environment, options.listenerOf?.(name, number)), address: null };
    }),
  );
  const start = async (member: Member) => {
    const { address } = await member.process.start(options.startLimitMs);
    member.address = address ?? null;
  };
  let stopped: Promise<(number | null)[]> | undefined;
  const endAll = async () => {
    const codes = await Promise.all(members.map((member) => member.process.end('SIGTERM')));
    await surroundings.close();
    return codes;
  };
  const stop = () => {
    stopped ??= endAll();
    return stopped;
  };
  const results = await Promise.allSettled(members.map(start));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) {
    await stop();
    throw failed.reason;
  }
  const { exchange, receiver, environment } = surroundings;
  const membersOf = (name: ProcessName) => members.filter((member) => member.process.name === name);
  const apis = () => membersOf('api').map((member) => member.address ?? '');
  let turn = 0;
  const nextApi = () => {
    const running = membersOf('api').filter((member) => member.process.isRunning);
    const addresses = running.length > 0 ? running.map((member) => member.address ?? '') : apis();
    turn += 1;
    return addresses[turn % addresses.length] ?? '';
  };
  return {
    exchange,
    receiver,
    environment,
    members,
    membersOf,
    apis,
    read: (path) => readFrom(nextApi(), path),
    call: (method, path, body, how) => callTo(nextApi(), method, path, body, how),
    start,
    stop,
  };
}
