import { get, type IncomingMessage } from 'node:http';
import { GUARD_MS } from './eventually.ts';

/** An event of a stream; `data` is the parsed JSON. */
export interface SseEvent {
  event: string;
  id: string;
  data: { type: string; seq?: number; data: Record<string, unknown>; [key: string]: unknown };
  text: string;
}

/** A stream of server-sent events, read by its own connection. */
export interface SseReader {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** All events so far, in order. */
  readonly events: readonly SseEvent[];
  /** The next event that fits and was not returned yet; earlier ones are skipped. @throws after the limit, or when the stream ends */
  next(fits?: (event: SseEvent) => boolean, limitMs?: number): Promise<SseEvent>;
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  /** Stops reading from the connection, and continues. */
  pause(): void;
  resume(): void;
  close(): void;
}

/** Opens a stream. An answer that is no stream has its body in `events[0].text`. */
export function openSse(url: string, headers: Record<string, string>): Promise<SseReader> {
  return new Promise((resolve, reject) => {
    const request = get(url, { headers, agent: false }, (response) => resolve(readerOf(response)));
    request.on('error', reject);
  });
}

function readerOf(response: IncomingMessage): SseReader {
  const events: SseEvent[] = [];
  let read = 0;
  let wake: () => void = () => undefined;
  let hasEnded = false;
  let rest = '';
  response.setEncoding('utf8');
  response.on('data', (chunk: string) => {
    const parts = (rest + chunk).split('\n\n');
    rest = parts.pop() ?? '';
    for (const part of parts) {
      const event = parse(part);
      if (event) events.push(event);
    }
    wake();
  });
  const ended = new Promise<void>((resolve) => {
    const end = () => {
      hasEnded = true;
      wake();
      resolve();
    };
    response.on('close', end);
    response.on('error', end);
  });
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    events,
    ended,
    async next(fits = () => true, limitMs = GUARD_MS) {
      const deadline = performance.now() + limitMs;
      for (;;) {
        while (read < events.length) {
          const event = events[read++] as SseEvent;
          if (fits(event)) return event;
        }
        const leftMs = deadline - performance.now();
        if (hasEnded || leftMs <= 0) {
          const seen = events
            .slice(-5)
            .map(({ text }) => text)
            .join('\n');
          throw new Error(`${hasEnded ? 'the stream ended' : 'no such event'}; the last events:\n${seen}\n${rest}`);
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
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    close: () => void response.destroy(),
  };
}

function parse(part: string): SseEvent | undefined {
  const fields = new Map(
    part.split('\n').map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at), line.slice(at + 1).trimStart()] as const;
    }),
  );
  const text = fields.get('data');
  if (text === undefined) return undefined;
  return { event: fields.get('event') ?? '', id: fields.get('id') ?? '', data: JSON.parse(text), text };
}

/** Whether an event has this type. */
export function ofType(type: string): (event: SseEvent) => boolean {
  return ({ event }) => event === type;
}

/** Whether an event has news: a slow server sends its state in between. */
export function isNews({ event }: SseEvent): boolean {
  return event !== 'heartbeat' && event !== 'stale';
}
