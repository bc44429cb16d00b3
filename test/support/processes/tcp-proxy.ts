import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { steadyPort } from './steady-port.ts';

/** A network between clients and one server on loopback that can go silent: it refuses and closes no connection, but sends no data. */
export interface TcpProxy {
  /** The given address, by way of this network. */
  readonly url: string;
  /** Stops all data, also on later connections, until `resume`. */
  hold(): void;
  /** Ends all connections, also later ones, until `resume`: a server that was killed and recovers. */
  cut(): void;
  /** Cuts instead of the next answer of the server with this text; resolves then. */
  cutAt(text: string): Promise<void>;
  /** Forwards the held bytes, in order. */
  resume(): void;
  /**
   * Silences the current connections permanently, as after a fail-over to another machine; new ones work. The server
   * does not notice until `bury`.
   */
  forsake(): void;
  /** Ends the silenced connections on the server's side, as its keepalive does after a while. */
  bury(): void;
  close(): Promise<void>;
}

interface Pair {
  readonly sockets: readonly [Socket, Socket];
  isForsaken: boolean;
}

/** A network to the server at this address on 127.0.0.1. */
export async function startTcpProxy(target: string): Promise<TcpProxy> {
  const port = await steadyPort();
  const url = new URL(target);
  const targetPort = Number(url.port);
  url.port = String(port);
  const pairs = new Set<Pair>();
  let isHeld = false;
  let isCut = false;
  let fatal: { text: string; onCut(): void } | undefined;
  const cut = () => {
    isCut = true;
    for (const { sockets } of pairs) for (const socket of sockets) socket.destroy();
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const upstream = connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true });
    const pair: Pair = { sockets: [client, upstream], isForsaken: false };
    pairs.add(pair);
    upstream.on('data', (chunk: Buffer) => {
      if (!fatal || !chunk.includes(fatal.text)) return;
      cut();
      fatal.onCut();
      fatal = undefined;
    });
    for (const [from, to] of [pair.sockets, [upstream, client]] as const) {
      from.setNoDelay(true);
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        // A silent connection does not send a FIN either.
        if (pair.isForsaken) return;
        to.destroy();
        pairs.delete(pair);
      });
    }
    if (isHeld) silence(pair);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: url.href,
    hold() {
      isHeld = true;
      for (const pair of pairs) silence(pair);
    },
    cut,
    cutAt: (text) =>
      new Promise((onCut) => {
        fatal = { text, onCut };
      }),
    resume() {
      isCut = false;
      isHeld = false;
      for (const pair of pairs) if (!pair.isForsaken) speak(pair);
    },
    forsake() {
      for (const pair of pairs) {
        pair.isForsaken = true;
        silence(pair);
      }
    },
    bury() {
      for (const { sockets, isForsaken } of pairs) if (isForsaken) sockets[1].destroy();
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const { sockets } of pairs) for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function silence({ sockets: [client, upstream] }: Pair): void {
  client.unpipe(upstream).pause();
  upstream.unpipe(client).pause();
}

function speak({ sockets: [client, upstream] }: Pair): void {
  client.pipe(upstream);
  upstream.pipe(client);
}
