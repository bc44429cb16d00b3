import { createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '../support/eventually.ts';

/** The API with streams whose messages a test sends. */
export interface ScriptedStreams {
  url: string;
  /** Sends a message on the latest stream, after its opening. */
  send(type: string, message: object): Promise<void>;
  /** Breaks all streams. Later ones get this answer, or none. */
  breakOff(status?: number): Promise<void>;
  close(): Promise<void>;
}

/** Serves all pages of the API, and its streams by script. */
export async function scriptStreams(apiUrl: string): Promise<ScriptedStreams> {
  const streams: ServerResponse[] = [];
  let answer: number | undefined = 200;
  let sent = 0;
  const server = createServer((incoming, response) => {
    const path = incoming.url ?? '/';
    if (path.startsWith('/console/stream/')) {
      if (answer === 200) {
        // A browser would connect again after three seconds.
        response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('retry: 50\n\n');
        streams.push(response);
      } else if (answer !== undefined) response.writeHead(answer).end();
      return;
    }
    const { host } = new URL(apiUrl);
    const forwarded = request(`${apiUrl}${path}`, { method: incoming.method, headers: { ...incoming.headers, host } });
    forwarded.on('response', (found) => found.pipe(response.writeHead(found.statusCode ?? 500, found.headers)));
    forwarded.on('error', () => response.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const latest = async () => {
    const open = () => streams.findLast(({ destroyed }) => !destroyed);
    await eventually(async () => open() !== undefined, Boolean);
    return open();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async send(type, message) {
      (await latest())?.write(`event: ${type}\nid: ${++sent}\ndata: ${JSON.stringify(message)}\n\n`);
    },
    async breakOff(status) {
      answer = status;
      for (const each of streams) each.destroy();
    },
    async close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
