import { nextFreePort } from '../../../src/embedded/free-port.ts';

/** Below the ports that the system gives to connections and to listeners on port 0. */
const FIRST = 10_000;
const LAST = 30_000;
/** Ports for one runner: its API, and the metrics of its processes. */
const BLOCK = 20;
let next = FIRST + ((process.pid * 7 * BLOCK) % (LAST - FIRST));

/**
 * PORT and METRICS_PORT for a runner, which chooses the ports of its processes before they listen. A port of the system could be taken by
 * another test in between.
 */
export async function runnerPorts(): Promise<{ PORT: string; METRICS_PORT: string }> {
  const from = next;
  next = from + BLOCK < LAST ? from + BLOCK : FIRST;
  const port = await nextFreePort(from, '127.0.0.1', new Set());
  return { PORT: String(port), METRICS_PORT: String(port + 1) };
}
