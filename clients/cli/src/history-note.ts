import type { TradeHistory } from '../../typescript/src/index.ts';
import type { Call } from './command.ts';
import { utc } from './rows.ts';

/** States on standard error, beside a table, how far back the stored trades of the market are complete. */
export async function noteHistory(
  call: Call,
  meta: { history: TradeHistory; cold_reads?: 'exhausted' },
): Promise<void> {
  if (call.flags.has('json')) return;
  const { status, covered_from: from, coverage, reason } = meta.history;
  const since = from === undefined ? '' : `; all trades since ${utc(from)} UTC are stored`;
  const share = coverage === undefined ? '' : `; ${(coverage.share * 100).toFixed(1)} % of the venue's volume`;
  const why = reason === undefined ? '' : ` (${reason})`;
  await call.note(`history: ${status}${why}${since}${share}`);
  if (meta.cold_reads !== undefined)
    await call.note('the stored state only: the account has used up its cold reads of this minute');
}
