import { setTimeout as delay } from 'node:timers/promises';
import { UsageError } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import type { AlertBacktest, AlertBacktestResult } from '../../../typescript/src/index.ts';
import type { Call } from '../command.ts';
import { CommandError } from '../errors.ts';
import { EXIT } from '../exit-codes.ts';
import { moment } from '../read-arguments.ts';
import { type Column, printRows } from '../rows.ts';

const DAY_SECONDS = 86_400;
const LOOK_EVERY_MS = 1_000;

type Firing = AlertBacktestResult['firings'][number];

const COLUMNS: readonly Column<Firing>[] = [
  { name: 'at', of: ({ at }) => at, show: ({ at }) => utc(at) },
  { name: 'price', of: ({ price }) => price, isNumber: true },
  { name: 'from', of: ({ fromPrice }) => fromPrice, isNumber: true },
  { name: 'value', of: ({ value }) => value, isNumber: true },
  { name: 'status', of: ({ status }) => status },
  { name: 'market', of: ({ marketId }) => marketId, cutAt: 16 },
  { name: 'token', of: ({ tokenMint }) => tokenMint, cutAt: 24 },
];

type Body = Parameters<ReturnType<Call['client']>['alerts']['backtest']>[0];

/** Prints the firings of an alert between two moments. Waits for the job of a long range. */
export async function backtestAlert(call: Call, alert: Body['alert']): Promise<number> {
  const nowMs = call.io.now();
  const end = moment(call, 'end', nowMs) ?? Math.floor(nowMs / 1_000);
  const start = moment(call, 'start', nowMs) ?? end - DAY_SECONDS;
  const { signal } = call.io;
  const answer = await call.client().alerts.backtest({ alert, start, end }, { signal });
  const result = 'id' in answer ? await resultOf(call, answer) : answer;
  await printRows(call, { rows: result.firings, columns: COLUMNS, answer: result, none: 'no firing' });
  if (call.flags.has('json')) return EXIT.done;
  await call.note(`${result.firingCount} firings on ${result.observations} observations`);
  if (result.approximate) {
    const since = result.exactFrom === undefined ? 'for the whole range' : `before ${utc(result.exactFrom)} UTC`;
    await call.note(`approximate: price history replaces observations ${since}`);
  }
  for (const { start: from, end: until, cause, venue } of result.gaps) {
    await call.note(`gap: ${utc(from)} to ${utc(until)} UTC, ${venue}: ${cause}`);
  }
  return EXIT.done;
}

async function resultOf(call: Call, started: AlertBacktest): Promise<AlertBacktestResult> {
  const { signal } = call.io;
  for (let job = started; ; job = await call.client().alerts.getBacktest(job.id, { signal })) {
    if (job.result !== undefined) return job.result;
    if (job.error !== undefined) throw new CommandError(`${job.error.code}: ${job.error.message}`, EXIT.failed);
    await call.note(`backtest ${job.id}: ${job.state}, ${Math.round(job.progress * 100)} %`);
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}

/** An alert as a body of `POST /v1/alerts`. @throws UsageError */
export function alertOfJson(text: string): Body['alert'] {
  try {
    return JSON.parse(text) as Body['alert'];
  } catch {
    throw new UsageError(['the alert must be JSON, such as {"tokenMint": "…", "condition": "above", "price": 0.6}']);
  }
}
