import { VenueError } from './errors.ts';
import type { RejectedRecord } from './port.ts';

/** This many rows, all rejected, indicate a changed format. A walk that continued would lose them. */
const SYSTEMIC_ROWS = 20;

/**
 * For a page of a feed of trades, some rows of which may be rejected.
 * @throws VenueError when all of many rows are
 */
export function refuseUnreadable(venue: string, rows: readonly { rejected?: RejectedRecord }[]): void {
  const [first] = rows;
  if (!first?.rejected || rows.length < SYSTEMIC_ROWS || rows.some((row) => !row.rejected)) return;
  const { reason, detail } = first.rejected;
  const message = `no trade of ${rows.length} is readable: ${reason}, ${detail}`;
  throw new VenueError(venue, 'invalid_payload', message, { retryable: true });
}
