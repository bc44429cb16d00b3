import type { Server } from 'node:http';
import { asError } from '../domain/values/errors.ts';
import { StartupError } from './lifecycle.ts';

/**
 * Listens and returns the address as a URL; port 0 picks a free one.
 * @throws StartupError in one line when the port is taken or the address is not an address of this machine
 */
export async function listen(server: Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(describe(error, host, port)));
    server.listen(port, host, resolve);
  });
  const address = server.address();
  const actual = typeof address === 'object' && address !== null ? address.port : port;
  return `http://${host.includes(':') ? `[${host}]` : host}:${actual}`;
}

function describe(thrown: unknown, host: string, port: number): Error {
  const error = asError(thrown) as Error & { code?: string };
  if (error.code === 'EADDRINUSE')
    return new StartupError(`port ${port} on ${host} is taken by another program`, error);
  if (error.code === 'EACCES') return new StartupError(`port ${port} on ${host} needs more rights`, error);
  if (error.code === 'EADDRNOTAVAIL') return new StartupError(`${host} is not an address of this machine`, error);
  return error;
}
