import { WebSocket } from 'ws';
import { GUARD_MS } from './eventually.ts';

export interface SocketMessage {
  type: string;
  seq?: number;
  id?: string;
  code?: string;
  message?: string;
  subs?: string[];
  cursor?: string;
  data?: Record<string, unknown>;
  [key: string]: unknown;
}

/** A WebSocket of a test. */
export interface SocketReader {
  readonly socket: WebSocket;
  readonly messages: readonly SocketMessage[];
  readonly texts: readonly string[];
  send(frame: object | string): void;
  /** The next message that fits and was not returned yet. @throws after the limit, or when the connection ends */
  next(fits?: (message: SocketMessage) => boolean): Promise<SocketMessage>;
  /** The close code and reason. */
  readonly closed: Promise<{ code: number; reason: string }>;
  close(): void;
}

/** The status and body of a refused upgrade. */
export class UpgradeRefusedError extends Error {
  readonly status: number;
  readonly body: string;

  constructor(status: number, body: string) {
    super(`the upgrade was refused: ${status} ${body}`);
    this.status = status;
    this.body = body;
  }
}

/** @throws UpgradeRefusedError */
export function openSocket(url: string, headers: Record<string, string> = {}): Promise<SocketReader> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { headers });
    const reader = readerOf(socket);
    socket.once('open', () => resolve(reader));
    socket.once('error', reject);
    socket.once('unexpected-response', (_request, response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on('end', () => reject(new UpgradeRefusedError(response.statusCode ?? 0, body)));
    });
  });
}

function readerOf(socket: WebSocket): SocketReader {
  const messages: SocketMessage[] = [];
  const texts: string[] = [];
  let read = 0;
  let hasEnded = false;
  let wake: () => void = () => undefined;
  socket.on('message', (data) => {
    texts.push(String(data));
    messages.push(JSON.parse(String(data)) as SocketMessage);
    wake();
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => {
      hasEnded = true;
      wake();
      resolve({ code, reason: String(reason) });
    });
  });
  socket.on('error', () => undefined);
  return {
    socket,
    messages,
    texts,
    closed,
    send: (frame) => socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame)),
    async next(fits = () => true) {
      const deadline = performance.now() + GUARD_MS;
      for (;;) {
        while (read < messages.length) {
          const message = messages[read++] as SocketMessage;
          if (fits(message)) return message;
        }
        const leftMs = deadline - performance.now();
        if (hasEnded || leftMs <= 0) {
          throw new Error(
            `${hasEnded ? 'the socket closed' : 'no such message'}; the last: ${texts.slice(-5).join('\n')}`,
          );
        }
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, leftMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    },
    close: () => socket.terminate(),
  };
}
