import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../support/eventually.ts';
import type { Fleet, Member } from '../../support/processes/fleet.ts';
import type { CampaignLog } from './campaign-log.ts';

/** The pause between the end of a process and its next start. */
const BACKOFF_MS = 250;
const WHOLE_LIMIT_MS = 120_000;

/**
 * Keeps the processes of a fleet running, like the runner or an orchestrator: it restarts ended processes. It records ends that
 * the test did not cause: no fault of a store, a venue or a receiver is a reason to end.
 */
export class Keeper {
  readonly #fleet: Fleet;
  readonly #log: CampaignLog;
  readonly #booting = new Set<Member>();
  readonly #killed = new Set<Member>();
  readonly #ends: string[] = [];
  #isOver = false;

  constructor(fleet: Fleet, log: CampaignLog) {
    this.#fleet = fleet;
    this.#log = log;
  }

  /** Processes that ended unexpectedly, with exit code or signal. */
  get ends(): readonly string[] {
    return this.#ends;
  }

  /** Processes that run and have reported their start. */
  running(): Member[] {
    return this.#fleet.members.filter((member) => member.process.isRunning && !this.#booting.has(member));
  }

  /** Sends SIGKILL at any time, also during a start; the process is restarted soon. */
  async kill(member: Member): Promise<void> {
    if (!member.process.isRunning) return;
    this.#killed.add(member);
    await member.process.end('SIGKILL');
  }

  /** Call it at each end of a process. */
  ended(member: Member, how: number | NodeJS.Signals): void {
    if (this.#isOver) return;
    const isOurs = this.#killed.delete(member);
    this.#log.note('process ended', { process: member.process.name, how, isOurs });
    if (!isOurs) this.#ends.push(`${member.process.name}: ${how}\n${member.process.lines.slice(-5).join('\n')}`);
    this.#booting.add(member);
    void this.#startAgain(member);
  }

  async #startAgain(member: Member): Promise<void> {
    await delay(BACKOFF_MS);
    if (this.#isOver) return;
    try {
      await this.#fleet.start(member);
      this.#booting.delete(member);
      this.#log.note('process started', { process: member.process.name });
    } catch (error) {
      // The process ended before it had started: `ended` was called, and retries.
      this.#log.note('process did not start', { process: member.process.name, error: String(error).slice(0, 300) });
    }
  }

  /** Resolves when all of them run. */
  async whole(): Promise<void> {
    const missing = async () =>
      this.#fleet.members.filter(({ process }) => !process.isRunning).length + this.#booting.size;
    await eventually(missing, (count) => count === 0, { timeoutMs: WHOLE_LIMIT_MS });
  }

  /** From now on, ended processes are not restarted. */
  stop(): void {
    this.#isOver = true;
  }
}
