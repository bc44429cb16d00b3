import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { within } from '../domain/values/signals.ts';
import type { Logger } from '../observe/logger.ts';
import { EXIT_CONFIG } from '../runtime/lifecycle.ts';

/** A process to keep running. */
interface ProcessSpec {
  readonly name: string;
  /** Program and arguments; `node` means the Node of this process. No shell. */
  readonly command: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Processes of a wave are stopped together, lower waves first. Default 0. */
  readonly stopWave?: number;
  /** How long a stop may take before the process is killed; default `limits.stopMs`. */
  readonly stopMs?: number;
}

export interface SupervisorLimits {
  /** From the request to stop until a process is killed, shared by all waves without a limit of their own. */
  readonly stopMs: number;
  readonly backoffMinMs: number;
  readonly backoffMaxMs: number;
  /** After this uptime the restart delay is reset. */
  readonly stableAfterMs: number;
}

const DEFAULT_LIMITS: SupervisorLimits = {
  stopMs: 18_000,
  backoffMinMs: 200,
  backoffMaxMs: 10_000,
  stableAfterMs: 30_000,
};

interface SupervisorOptions {
  readonly cwd: string;
  readonly log: Logger;
  /** Each line a process prints, on stdout or on stderr. */
  readonly onLine: (name: string, line: string, isError: boolean) => void;
  /** Each message a process sends over its channel. */
  readonly onMessage?: (name: string, message: unknown) => void;
  readonly limits?: Partial<SupervisorLimits>;
}

/** The reason of the end: a request, or a process that reported a permanent fault. */
export interface Outcome {
  readonly fatal?: { readonly name: string };
}

/** Keeps processes running: restarts a child that ends, with growing delays. */
interface Supervisor {
  readonly start: (spec: ProcessSpec) => void;
  /** Ends everything, wave by wave; later calls join the first. Resolves when all processes have ended. */
  readonly stop: () => Promise<void>;
  /** Resolves once everything is stopped. Never rejects. */
  readonly finished: Promise<Outcome>;
}

interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Exit>;
}

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

interface Member {
  readonly spec: ProcessSpec;
  running: Running | null;
  restartTimer: NodeJS.Timeout | undefined;
  backoffMs: number;
}

/** The last output of a process may still be in the pipe when its end is seen. */
const OUTPUT_DRAIN_MS = 500;
const MIN_WAVE_MS = 1_000;

export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { log } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const members: Member[] = [];
  let finish: (outcome: Outcome) => void = () => undefined;
  const finished = new Promise<Outcome>((resolve) => {
    finish = resolve;
  });
  let outcome: Outcome = {};
  let stopping: Promise<void> | undefined;

  function launch(member: Member): void {
    const { spec } = member;
    const startedAt = Date.now();
    const child = spawnChild(spec, options.cwd);
    const running = { child, ended: ended(child) };
    member.running = running;
    const outputClosed = new Promise((resolve) => {
      child.once('close', resolve);
    });
    readLines(child, (line, isError) => {
      // Five processes that reject the same setting print it once.
      if (isError && outcome.fatal !== undefined) return;
      options.onLine(spec.name, line, isError);
    });
    child.on('message', (message) => options.onMessage?.(spec.name, message));
    // The channel of an ending child fails; only the exit counts.
    child.on('error', (error) => log.debug({ err: error, name: spec.name }, 'process channel or start'));
    running.ended
      .then(async ({ code, signal }) => {
        member.running = null;
        const exit = { name: spec.name, exitedPid: child.pid, code, signal, upMs: Date.now() - startedAt };
        if (stopping !== undefined) {
          log[code === 0 ? 'info' : 'warn'](exit, 'process stopped');
        } else if (code === EXIT_CONFIG) {
          await within(OUTPUT_DRAIN_MS, outputClosed, () => undefined);
          outcome = { fatal: { name: spec.name } };
          log.info(exit, 'process cannot run; stopping everything');
          await stop();
        } else {
          restartLater(member, exit);
        }
      })
      .catch((error: unknown) => log.error({ err: error, name: spec.name }, 'supervision of a process failed'));
  }

  function restartLater(member: Member, exit: { upMs: number }): void {
    const isStable = exit.upMs >= limits.stableAfterMs;
    const restartInMs = isStable ? limits.backoffMinMs : member.backoffMs;
    member.backoffMs = Math.min(restartInMs * 2, limits.backoffMaxMs);
    log.warn({ ...exit, restartInMs }, 'process ended by itself; restarting it');
    member.restartTimer = setTimeout(() => launch(member), restartInMs);
  }

  async function stopAll(): Promise<void> {
    for (const { restartTimer } of members) clearTimeout(restartTimer);
    const deadline = Date.now() + limits.stopMs;
    const waves = [...new Set(members.map(({ spec }) => spec.stopWave ?? 0))].sort((a, b) => a - b);
    for (const wave of waves) {
      const ofWave = members.filter(({ spec }) => (spec.stopWave ?? 0) === wave);
      const restMs = Math.max(deadline - Date.now(), Math.min(MIN_WAVE_MS, limits.stopMs));
      await Promise.all(ofWave.map((one) => stopOne(one, one.spec.stopMs ?? restMs)));
    }
    finish(outcome);
  }

  async function stopOne({ spec, running }: Member, limitMs: number): Promise<void> {
    if (running === null) return;
    const { child } = running;
    child.kill('SIGTERM');
    const timer = setTimeout(() => {
      log.warn({ name: spec.name, killedPid: child.pid, afterMs: limitMs }, 'process did not stop in time; killing it');
      killGroup(child);
    }, limitMs);
    await running.ended;
    clearTimeout(timer);
  }

  function stop(): Promise<void> {
    stopping ??= stopAll();
    return stopping;
  }

  return {
    start(spec) {
      if (stopping !== undefined) return;
      const member: Member = { spec, running: null, restartTimer: undefined, backoffMs: limits.backoffMinMs };
      members.push(member);
      launch(member);
    },
    stop,
    finished,
  };
}

/** A session of its own: a terminal's Ctrl-C reaches only this process, which knows the stop order. */
function spawnChild(spec: ProcessSpec, cwd: string): ChildProcess {
  const [program, ...args] = spec.command;
  return spawn(program === 'node' ? process.execPath : program, args, {
    cwd,
    detached: true,
    env: spec.environment,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
}

/** Resolves at any end of the child, also when it could not be started (code 127, as in shells). */
function ended(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', () => {
      if (child.pid === undefined) resolve({ code: 127, signal: null });
    });
  });
}

function readLines(child: ChildProcess, onLine: (line: string, isError: boolean) => void): void {
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on('line', (line) => onLine(line, stream === child.stderr));
  }
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
