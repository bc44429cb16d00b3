import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { eventually } from '../../test/support/eventually.ts';
import { API_KEY } from '../../test/support/processes/system.ts';

/** Clients whose messages are read. The others count bytes only, because client and server share the machine. */
const READ_CLIENTS = 20;
/** Connections that open at the same time. */
const AT_ONCE = 100;

/** Open streams of one server. */
export interface StreamLoad {
  /** Milliseconds from the time in each message to its arrival, of the clients that are read. */
  readonly delaysMs: number[];
  /** Bytes that arrived at all clients. */
  readonly bytes: number;
  /** The text of the last message of a client. */
  readonly sample: string;
  close(): void;
}

/** The delays of the messages in a text: from their commits to a moment, epoch milliseconds. */
type DelaysIn = (text: string, nowMs: number) => number[];

/** The time of a message of a price is that of its publication. */
const delaysOfPrices: DelaysIn = (text, nowMs) =>
  [...text.matchAll(/"type":"price",[^}]*?"at":"([^"]+)"/g)].map(([, at = '']) => nowMs - Date.parse(at));

/** Opens this number of streams, the n-th of a path; resolves when each has received something. */
export async function openStreams(
  address: string,
  pathOf: (n: number) => string,
  count: number,
  delaysIn: DelaysIn = delaysOfPrices,
): Promise<StreamLoad> {
  const { hostname, port } = new URL(address);
  const requestOf = (n: number) =>
    `GET ${pathOf(n)} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${API_KEY}\r\n\r\n`;
  const sockets: Socket[] = [];
  const state = { bytes: 0, started: 0, sample: '' };
  const delaysMs: number[] = [];

  function open(isRead: boolean): Promise<unknown> {
    const socket = connect({ host: hostname, port: Number(port) });
    let hasStarted = false;
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      if (!hasStarted) state.started += 1;
      hasStarted = true;
      state.bytes += chunk.length;
      if (isRead) read(chunk.toString('latin1'));
    });
    socket.write(requestOf(sockets.length));
    sockets.push(socket);
    return once(socket, 'connect');
  }

  function read(text: string): void {
    delaysMs.push(...delaysIn(text, Date.now()));
    const event = text.split('\n\n').find((one) => one.includes('event: price') && one.includes('data: '));
    if (event) state.sample = `${event.slice(event.indexOf('event:'))}\n\n`;
  }

  // Spread over all clients, because a server writes to them in turn.
  const readEvery = Math.ceil(count / READ_CLIENTS);
  while (sockets.length < count) {
    const some = Math.min(AT_ONCE, count - sockets.length);
    await Promise.all(Array.from({ length: some }, () => open(sockets.length % readEvery === 0)));
  }
  await eventually(
    async () => state.started,
    (started) => started >= count,
  );
  return {
    delaysMs,
    get bytes() {
      return state.bytes;
    },
    get sample() {
      return state.sample;
    },
    close() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Bytes of a process in memory. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) * 1_024;
}
