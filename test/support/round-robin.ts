import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** A load balancer of connections. */
export interface RoundRobin {
  readonly address: string;
  close(): Promise<void>;
}

/** The interval of readiness checks of each server. */
const ASK_EVERY_MS = 100;

/**
 * Assigns each new connection to the next ready server, as load balancers do: a server that answers 503 gets no more,
 * and a server that refuses is skipped. The list of servers is read each time.
 */
export async function startRoundRobin(addresses: () => readonly string[]): Promise<RoundRobin> {
  let ready: readonly string[] = addresses();
  let turn = 0;
  const sockets = new Set<Socket>();
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
  };

  async function ask(): Promise<void> {
    const answers = await Promise.all(addresses().map(async (address) => ((await isReady(address)) ? [address] : [])));
    ready = answers.flat();
  }

  function join(client: Socket, triesLeft: number): void {
    turn += 1;
    const address = ready[turn % ready.length];
    if (address === undefined || triesLeft === 0) {
      client.destroy();
      return;
    }
    const { hostname, port } = new URL(address);
    const server = connect(Number(port), hostname);
    track(server);
    server.once('error', () => {
      if (server.bytesRead === 0 && !server.readableEnded) join(client, triesLeft - 1);
    });
    server.once('connect', () => {
      client.pipe(server).pipe(client);
      client.once('close', () => server.destroy());
      server.once('close', () => client.end());
    });
  }

  const balancer = createServer((client) => {
    track(client);
    join(client, 2 * addresses().length);
  }).listen(0, '127.0.0.1');
  await once(balancer, 'listening');
  const timer = setInterval(() => void ask(), ASK_EVERY_MS);
  const bound = balancer.address();
  if (typeof bound !== 'object' || bound === null) throw new Error('no address');
  return {
    address: `http://127.0.0.1:${bound.port}`,
    async close() {
      clearInterval(timer);
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => balancer.close(resolve));
    },
  };
}

async function isReady(address: string): Promise<boolean> {
  try {
    return (await fetch(`${address}/health/ready`, { signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    return false;
  }
}
