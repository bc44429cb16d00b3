import { createInterface } from 'node:readline';
import { openDeadline } from '../../../../src/domain/values/signals.ts';
import type { CliCommand, Settings } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { VERSION } from '../version.ts';

/** The code of JSON-RPC for errors of a server's own. */
const SERVER_ERROR = -32_000;
const PARSE_ERROR = -32_700;
/** A tool may wait some seconds for data of a venue. */
const ANSWER_MS = 60_000;

interface Message {
  id?: string | number;
  method?: string;
  result?: { protocolVersion?: unknown };
}

/**
 * Passes messages of the Model Context Protocol between standard input and output, one per line, and the endpoint /mcp of the service.
 * The endpoint has no sessions and sends nothing by itself, so each line is one request.
 */
class McpProxy {
  readonly #endpoint: URL;
  readonly #key: string;
  readonly #signal: AbortSignal;
  /** The version that the service chose in its answer to `initialize`. */
  #protocolVersion: string | undefined;

  constructor({ url, key }: Settings, signal: AbortSignal) {
    this.#endpoint = new URL('mcp', url.endsWith('/') ? url : `${url}/`);
    this.#key = key;
    this.#signal = signal;
  }

  /** The line that answers a line; undefined when the line gets no answer. */
  async answer(line: string): Promise<string | undefined> {
    // A line may be JSON without being a message: the service answers that.
    let message: Message | null;
    try {
      message = JSON.parse(line) as Message | null;
    } catch {
      return failure(null, PARSE_ERROR, 'the line is not valid JSON');
    }
    try {
      const text = await this.#post(line);
      if (text === '') return undefined;
      const answered = JSON.parse(text) as Message;
      if (message?.method === 'initialize' && typeof answered.result?.protocolVersion === 'string') {
        this.#protocolVersion = answered.result.protocolVersion;
      }
      // A message is one line.
      return JSON.stringify(answered);
    } catch (error) {
      this.#signal.throwIfAborted();
      // A notification gets no answer, not even an error.
      return message?.id === undefined ? undefined : failure(message.id, SERVER_ERROR, (error as Error).message);
    }
  }

  async #post(body: string): Promise<string> {
    const deadline = openDeadline([this.#signal], ANSWER_MS);
    try {
      return await this.#answerOf(body, deadline.signal);
    } finally {
      deadline.close();
    }
  }

  async #answerOf(body: string, signal: AbortSignal): Promise<string> {
    const response = await fetch(this.#endpoint, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${this.#key}`,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'User-Agent': `oddswire-cli/${VERSION}`,
        ...(this.#protocolVersion !== undefined && { 'MCP-Protocol-Version': this.#protocolVersion }),
      },
      body,
      // A redirect would carry the key to another address.
      redirect: 'error',
      signal,
    }).catch((error: Error & { cause?: Error }) => {
      throw new Error(`no answer from ${this.#endpoint.origin}: ${error.cause?.message || error.message}`);
    });
    const text = await response.text();
    // Errors of the protocol itself are answers too; those of the API have its envelope.
    if (response.ok || text.includes('"jsonrpc"')) return text;
    throw new Error(errorText(text, response));
  }
}

/** Code, message and request id of an error of the API. */
function errorText(text: string, { status, headers }: Response): string {
  const request = headers.get('x-request-id');
  const suffix = request === null ? '' : ` (request ${request})`;
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string } };
    return `${error.code}: ${error.message}${suffix}`;
  } catch {
    return `the answer with status ${status} is not from oddswire${suffix}`;
  }
}

function failure(id: string | number | null, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } });
}

export const mcp: CliCommand = {
  summary: 'Serves the Model Context Protocol on standard input and output, for programs that start their servers.',
  forms: ['mcp'],
  options: {},
  words: [0, 0],
  notes: `A program starts it with the variables ODDSWIRE_URL and ODDSWIRE_KEY. Each message goes to /mcp of the service, with the scopes and
limits of the key. It ends with its input.`,
  async run(call) {
    const { io } = call;
    const proxy = new McpProxy(call.settings(), io.signal);
    const lines = createInterface({ input: io.stdin, signal: io.signal });
    // Answers may come in any order, but the version is known only after the answer to the first message.
    const open = new Set<Promise<void>>();
    let isFirst = true;
    for await (const line of lines) {
      if (line.trim() === '') continue;
      const answering = proxy.answer(line).then(async (answer) => {
        if (answer !== undefined) await call.print(`${answer}\n`);
      });
      if (isFirst) await answering;
      isFirst = false;
      open.add(answering);
      answering.then(
        () => open.delete(answering),
        () => undefined,
      );
    }
    await Promise.all(open);
    if (io.signal.aborted) await call.note('stopped serving; the service keeps no session');
    return EXIT.done;
  },
};
