import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** `error`: status 500. `silence`: no answer. `half`: the connection ends inside the body. `changed`: other bytes. `lost`: done, but no answer. */
type Fault = 'error' | 'silence' | 'half' | 'changed' | 'lost';

/** A server of S3 with faults. */
export interface FaultProxy {
  readonly url: string;
  /** The method and the path of each request so far, such as `PUT /bucket/key`. */
  readonly requests: string[];
  /** Requests that match get the fault, at most so often, after so many that do not. */
  fail(fault: Fault, match: RegExp, times?: number, after?: number): void;
  /** Ends all faults; held requests reach the server. */
  heal(): void;
  close(): Promise<void>;
}

export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const requests: string[] = [];
  let rules: { fault: Fault; match: RegExp; left: number; after: number }[] = [];
  let held: (() => void)[] = [];
  const server = createServer((incoming, answer) => {
    const name = `${incoming.method} ${incoming.url}`;
    requests.push(name);
    const rule = rules.find(({ match, left }) => left > 0 && match.test(name));
    if (rule === undefined || rule.after > 0) {
      if (rule !== undefined) rule.after -= 1;
      void forward(incoming, answer);
    } else {
      rule.left -= 1;
      if (rule.fault === 'silence') held.push(() => void forward(incoming, answer));
      else if (rule.fault === 'error') {
        incoming.resume();
        answer.writeHead(500).end('<Error><Code>InternalError</Code></Error>');
      } else void forward(incoming, answer, rule.fault);
    }
  });
  const pass = async (incoming: IncomingMessage, answer: ServerResponse, fault?: Fault) => {
    const sent = request(new URL(incoming.url ?? '', target), { method: incoming.method, headers: incoming.headers });
    incoming.pipe(sent);
    const [got] = (await once(sent, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of got) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    if (fault === 'lost') {
      answer.destroy();
      return;
    }
    answer.writeHead(got.statusCode ?? 502, got.headers);
    if (fault === 'half') answer.write(body.subarray(0, body.length / 2), () => answer.destroy());
    else answer.end(fault === 'changed' ? body.map((byte) => byte ^ 1) : body);
  };
  // A client that gave up ends its request, and so the one behind it.
  const forward = (...passed: Parameters<typeof pass>) => pass(...passed).catch(() => passed[1].destroy());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    fail(fault, match, times = Number.POSITIVE_INFINITY, after = 0) {
      rules.push({ fault, match, left: times, after });
    },
    heal() {
      rules = [];
      for (const release of held) release();
      held = [];
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
