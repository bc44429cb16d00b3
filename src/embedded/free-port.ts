import { once } from 'node:events';
import { createServer } from 'node:net';

/** Whether this address and port are free, found by listening on them. */
export async function isPortFree(port: number, host: string): Promise<boolean> {
  return (await tryPort(port, host)) !== null;
}

/** A free port of `host`, chosen by the system. */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  const port = await tryPort(0, host);
  if (port === null) throw new Error(`no free port on ${host}`);
  return port;
}

/** The first free port from `from` on that is not in `taken`. */
export async function nextFreePort(from: number, host: string, taken: ReadonlySet<number>): Promise<number> {
  for (let port = from; port <= 65_535; port++) {
    if (!taken.has(port) && (await isPortFree(port, host))) return port;
  }
  throw new Error(`no free port on ${host} from ${from} on`);
}

async function tryPort(port: number, host: string): Promise<number | null> {
  const probe = createServer();
  try {
    probe.listen({ port, host, exclusive: true });
    await once(probe, 'listening');
  } catch (error) {
    // The real listener reports EADDRNOTAVAIL, EACCES and similar errors.
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return null;
    return port;
  }
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return typeof address === 'object' && address !== null ? address.port : port;
}
