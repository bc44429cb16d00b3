import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { asyncApiText } from '../../../api/routes/documents.ts';
import { createClient, OddswireApiError, type StreamItem } from '../../../clients/typescript/src/index.ts';
import { AsyncContract } from '../../support/async-contract.ts';
import { forTests } from '../../support/for-tests.ts';
import { endWithThisProcess } from '../../support/processes/orphan-guard.ts';

/** The Python client reads the same number of seeds, from the same variable. */
const SEEDS = Number(process.env['STREAM_SEEDS'] ?? 40);

interface RunStart {
  baseUrl: string;
  query: { channels: ('prices' | 'trades')[]; snapshot: boolean };
  lastCheckedAt: string;
}

const server = forTests(startFaultServer, ({ process }) => process.kill());

async function startFaultServer(): Promise<{ process: ChildProcess; url: string }> {
  const program = fileURLToPath(new URL('fault-server.mjs', import.meta.url));
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  endWithThisProcess(child);
  for await (const line of child.stdout) return { process: child, url: String(line).trim() };
  throw new Error('the fault server ended');
}

async function getJson<T>(url: string): Promise<T> {
  return (await (await fetch(url)).json()) as T;
}

/** Follows the stream of a run to its end; returns the problems of its log. */
async function problemsOf(run: string): Promise<string[]> {
  const { baseUrl, query, lastCheckedAt } = await getJson<RunStart>(`${server.url}/runs/${run}`);
  const client = createClient({ baseUrl, apiKey: 'ow_live_conformance', decimals: 'string' });
  const log: string[] = [];
  try {
    for await (const item of client.stream(query, { maxDelayMs: 20, graceMs: 1_500 })) {
      log.push(lineOf(item));
      if (item.type === 'heartbeat' && item.data.checked_at === lastCheckedAt) break;
    }
  } catch (error) {
    if (!(error instanceof OddswireApiError)) throw error;
    log.push(`error ${error.code}`);
  }
  const body = JSON.stringify(log);
  const answer = await fetch(`${server.url}/runs/${run}/log`, { method: 'POST', body });
  return ((await answer.json()) as { problems: string[] }).problems;
}

/** The line of an item in the log of a client, as in `run.mjs`. */
function lineOf(item: StreamItem<string>): string {
  switch (item.type) {
    case 'price':
      return `price ${item.seq} ${item.data.price}`;
    case 'trade':
      return `trade ${item.seq} ${item.data.size}`;
    case 'gap': {
      const { reason, from, to, start, end } = item.data;
      return `gap ${item.seq} ${reason} ${start === undefined ? `${from}-${to}` : `${start}-${end ?? 'open'}`}`;
    }
    case 'heartbeat':
      return `complete ${item.seq} ${item.data.checked_at}`;
    case 'stale':
      return `stale ${item.data.reason}`;
    case 'silent':
      return `silent ${item.data.reason} ${item.data.checked_at ?? 'never'}`;
    default:
      return `${item.type} ${item.seq}`;
  }
}

describe('the TypeScript client', () => {
  const contract = new AsyncContract(asyncApiText({ decimalFormat: 'number', venues: [] }));

  it.concurrent.for(Array.from({ length: SEEDS }, (_, seed) => seed))(
    'loses and repeats nothing and reports each gap when a stream has the faults of seed %i',
    async (seed) => {
      const run = `${seed}-typescript`;
      expect(await problemsOf(run)).toEqual([]);
      const sent = (await getJson<string[]>(`${server.url}/runs/${run}/sent`)).filter(isJson);
      expect(sent.flatMap((text) => contract.problemsOf('marketStream', text))).toEqual([]);
      expect(sent).not.toEqual([]);
    },
  );
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
