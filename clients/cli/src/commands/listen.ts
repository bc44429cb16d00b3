import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '../../../../cli/arguments.ts';
import { eventText } from '../../../../src/domain/events/events.ts';
import { parseExactJson } from '../../../../src/domain/values/exact-json.ts';
import type { Data } from '../../../../src/domain/webhooks/chat-values.ts';
import { SUBSCRIBABLE_EVENTS } from '../../../../src/domain/webhooks/event.ts';
import { generateSecret, secretProblem } from '../../../../src/domain/webhooks/signature.ts';
import { OddswireApiError, type WebhookEvent } from '../../../typescript/src/index.ts';
import type { Call, CliCommand, Settings } from '../command.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import type { Io } from '../io.ts';
import { forward, type Verdict } from '../listen/forward.ts';
import { replaceFile, stateFolder } from '../state-folder.ts';

export const listen: CliCommand = {
  summary: "Prints the account's events as they happen, and forwards them to a local address, signed like a webhook.",
  forms: ['listen [--forward URL] [--events TYPES] [--secret SECRET]'],
  options: {
    forward: { value: 'URL', help: 'sends each event there, such as http://127.0.0.1:3000/hook' },
    events: { value: 'TYPES', help: `a comma list of ${SUBSCRIBABLE_EVENTS.join(', ')}; by default all` },
    secret: { value: 'SECRET', help: 'signs with this secret; by default one is made, printed and kept' },
    'from-now': { help: 'begins with new events, in place of those since the last run' },
    'cursor-file': { value: 'FILE', help: 'keeps the position and the secret in this file' },
    json: { help: 'prints one JSON object per event, with the verdict' },
  },
  words: [0, 0],
  notes: `The position is kept behind each handled event: the next run with the same address, key and URL continues there, also after days.
An event is handled when the receiver answered, with any status. While nothing listens at URL, listen waits and repeats.
Ctrl-C ends it with exit code 0.`,
  async run(call) {
    const types = typesOf(call);
    const target = targetOf(call);
    const file = call.texts.get('cursor-file') ?? stateFileOf(call.settings(), target, call.io.env);
    const stored = await readState(file);
    const secret = secretOf(call) ?? stored.secret ?? generateSecret();
    const listener = new Listener(call, { types, target, secret, file, state: { ...stored, secret } });
    if (call.flags.has('from-now')) listener.forget();
    await listener.announce();
    await listener.run();
    return EXIT.done;
  },
};

interface ListenerOptions {
  types: ReadonlySet<string>;
  target: string | undefined;
  secret: string;
  file: string;
  state: ListenState;
}

class Listener {
  readonly #call: Call;
  readonly #options: ListenerOptions;
  #state: ListenState;
  #contact: 'none' | 'good' | 'lost' = 'none';

  constructor(call: Call, options: ListenerOptions) {
    this.#call = call;
    this.#options = options;
    this.#state = options.state;
  }

  forget(): void {
    const { secret } = this.#options;
    this.#state = { secret };
  }

  async announce(): Promise<void> {
    const { target, secret } = this.#options;
    const from = this.#state.cursor === undefined ? 'from now on' : 'since the last run';
    const goal = target === undefined ? 'printing' : `forwarding to ${target}`;
    await this.#call.note(`${goal} the events of the account ${from}; Ctrl-C ends it`);
    if (target !== undefined) await this.#call.note(`signing secret: ${secret}`);
  }

  async run(): Promise<void> {
    const { io } = this.#call;
    const { cursor } = this.#state;
    const stream = this.#call.client().eventStream(cursor === undefined ? {} : { cursor }, { signal: io.signal });
    try {
      for await (const item of stream) {
        switch (item.type) {
          case 'heartbeat':
            if (this.#contact === 'none') await this.#call.note('connected');
            if (this.#contact === 'lost') await this.#warn('connected again; no event is missing');
            this.#contact = 'good';
            break;
          case 'silent':
            this.#contact = 'lost';
            await this.#warn(
              item.data.reason === 'no_heartbeat'
                ? 'no sign of life from the API; connecting again'
                : 'the connection is lost; connecting again',
            );
            break;
          case 'stale':
            await this.#warn(
              item.data.reason === 'commit_pending'
                ? 'a transaction that stores events lasts; events may be late'
                : 'the API has no answer of its database; events may be late',
            );
            break;
          case 'gap':
            await this.#warn(
              item.data.reason === 'expired'
                ? 'GAP: events since the last run are not stored any more'
                : 'GAP: the database was restored from a backup',
            );
            break;
          case 'lagged':
            break;
          default:
            await this.#handle(item);
        }
        if (item.type !== 'silent') await this.#keep(item.cursor);
      }
      if (io.signal.aborted) await this.#stopped();
    } catch (error) {
      if (io.signal.aborted) return this.#stopped();
      if (error instanceof OddswireApiError && error.code === 'invalid_cursor') {
        const request = error.requestId === undefined ? '' : ` (request ${error.requestId})`;
        throw new CommandError(
          `invalid_cursor: the kept position belongs to another deployment${request}; \`listen --from-now\` forgets it`,
          EXIT.failed,
        );
      }
      throw error;
    }
  }

  #stopped(): Promise<void> {
    const goal = this.#options.target === undefined ? 'printing' : 'forwarding';
    return this.#call.note(
      this.#state.cursor === undefined
        ? `stopped ${goal} before the first message; the next run begins with new events`
        : `stopped ${goal} behind ${this.#state.cursor}; the same command continues there (${this.#options.file})`,
    );
  }

  async #handle(event: WebhookEvent & { body: string }): Promise<void> {
    const { types, target, secret } = this.#options;
    const { io, flags, colours } = this.#call;
    if (!types.has(event.type)) return;
    const verdict =
      target === undefined
        ? undefined
        : await forward(event, {
            url: target,
            secret,
            signal: io.signal,
            now: io.now,
            onWaiting: (reason) => this.#warn(`nothing listens at ${target} (${reason}); waiting with ${event.id}`),
          });
    if (flags.has('json')) {
      const { cursor: _cursor, body: _body, ...plain } = event as typeof event & { cursor: string };
      await this.#call.print(`${JSON.stringify({ event: plain, ...(verdict && { verdict }) })}\n`);
      return;
    }
    const time = colours.dim(event.timestamp.slice(11, 23));
    const { subject, facts, market } = eventText(event.type, (parseExactJson(event.body).value as { data: Data }).data);
    const parts = [
      time,
      colours.cyan(event.type.padEnd(14)),
      event.id,
      [subject, facts].filter((part) => part !== '').join(' '),
      market,
      verdict === undefined ? '' : this.#verdictText(verdict),
    ];
    await this.#call.print(`${parts.filter((part) => part !== '').join('  ')}\n`);
  }

  #verdictText(verdict: Verdict): string {
    const { green, red } = this.#call.colours;
    if ('error' in verdict) return red(`-> failed in ${verdict.ms} ms: ${verdict.error}`);
    return (verdict.isSuccess ? green : red)(`-> ${verdict.status} in ${verdict.ms} ms`);
  }

  async #keep(cursor: string): Promise<void> {
    if (cursor === '' || cursor === this.#state.cursor) return;
    this.#state = { ...this.#state, cursor };
    await writeState(this.#options.file, this.#state);
  }

  #warn(text: string): Promise<void> {
    return this.#call.note(this.#call.colours.yellow(text));
  }
}

function typesOf({ texts }: Call): ReadonlySet<string> {
  const names = texts.get('events')?.split(',') ?? [...SUBSCRIBABLE_EVENTS];
  const known: readonly string[] = SUBSCRIBABLE_EVENTS;
  if (names.some((name) => !known.includes(name)))
    throw new UsageError([`--events must be a comma list of ${known.join(', ')}`]);
  return new Set(names);
}

function targetOf({ texts }: Call): string | undefined {
  const text = texts.get('forward');
  if (text === undefined) return undefined;
  const url = urlOf(text);
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new UsageError(['--forward must be an http or https address']);
  return url.href;
}

/** Not `URL.canParse`, which rejects characters such as `ü` in a busy process of Node 20. */
function urlOf(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

function secretOf({ texts }: Call): string | undefined {
  const secret = texts.get('secret');
  const problem = secret === undefined ? null : secretProblem(secret);
  if (problem !== null) throw new UsageError([`--secret ${problem}`]);
  return secret;
}

/** The memory of `listen` between two runs. */
interface ListenState {
  /** The position behind the last handled event; undefined before the first message. */
  cursor?: string;
  /** The signing secret that `listen` made. */
  secret?: string;
}

/** The file of one account and target: two targets of an account each get every event. */
function stateFileOf({ url, key }: Settings, forward: string | undefined, env: Io['env']): string {
  const id = createHash('sha256')
    .update(JSON.stringify([url, key, forward ?? null]))
    .digest('hex')
    .slice(0, 16);
  return join(stateFolder(env), `listen-${id}.json`);
}

/** An empty state without the file. @throws CommandError for a file that is not one of these */
async function readState(file: string): Promise<ListenState> {
  try {
    const { cursor, secret } = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;
    return { ...(typeof cursor === 'string' && { cursor }), ...(typeof secret === 'string' && { secret }) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw new CommandError(`cannot read the position in ${file}: ${(error as Error).message}`, EXIT.failed);
  }
}

/** Replaces the file in one step, readable by its owner only. @throws CommandError when it cannot be written */
async function writeState(file: string, state: ListenState): Promise<void> {
  try {
    await replaceFile(file, `${JSON.stringify(state)}\n`);
  } catch (error) {
    throw new CommandError(`cannot keep the position in ${file}: ${(error as Error).message}`, EXIT.failed);
  }
}
