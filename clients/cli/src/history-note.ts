import { utc } from '../../../cli/table.ts';
import type { TradeHistory } from '../../typescript/src/index.ts';
import type { Call } from './command.ts';

/** A share of 0 to 1 as percents, rounded down: only a complete one is 100 %. */
export function shareText(share: number): string {
  return `${(Math.floor(share * 1_000 + 1e-6) / 10).toFixed(1)} %`;
}

/** States on standard error, beside a table, how far back the stored trades of the market are complete. */
export async function noteHistory(
  call: Call,
  meta: { history: TradeHistory; cold_reads?: 'exhausted' },
): Promise<void> {
  if (call.flags.has('json')) return;
  const { status, covered_from: from, covered_to: to, coverage, reason } = meta.history;
  const until = to === undefined ? '' : ` until ${utc(to)} UTC`;
  const since = from === undefined ? '' : `; all trades since ${utc(from)} UTC${until} are stored`;
  const share = coverage === undefined ? '' : `; ${shareText(coverage.share)} of the venue's volume`;
  const why = reason === undefined ? '' : ` (${reason})`;
  await call.note(`history: ${status}${why}${since}${share}`);
  if (meta.cold_reads !== undefined)
    await call.note('the stored state only: the account has used up its cold reads of this minute');
}
