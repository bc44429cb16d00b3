import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SeenRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage['headers'];
  body: string;
}

export type Answer = (request: SeenRequest, response: ServerResponse) => void;

/** An HTTP server with answers from the test; it records its requests. */
export class ScriptedServer {
  readonly requests: SeenRequest[] = [];
  answer: Answer = json(200, {});
  private readonly server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const url = new URL(request.url ?? '/', 'http://venue');
      const seen = {
        method: request.method ?? '',
        path: url.pathname,
        query: url.searchParams,
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
      };
      this.requests.push(seen);
      this.answer(seen, response);
    });
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Sets the answers in order; the last one repeats. */
  script(...answers: Answer[]): void {
    const waiting = [...answers];
    this.answer = (request, response) => {
      const next = waiting.length > 1 ? waiting.shift() : waiting[0];
      next?.(request, response);
    };
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

export function json(statusCode: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (_, response) => {
    response.writeHead(statusCode, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
}

export function raw(body: string | Buffer, headers: Record<string, string> = {}): Answer {
  return (_, response) => {
    response.writeHead(200, headers).end(body);
  };
}

/** Accepts the request and never answers. */
export const silence: Answer = () => undefined;

/** Cuts the connection. */
export const hangUp: Answer = (_, response) => {
  response.destroy();
};
