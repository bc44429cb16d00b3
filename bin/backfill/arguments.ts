import { choiceOf, parse, present, UsageError } from '../../cli/arguments.ts';
import { pastOf } from '../../cli/spans.ts';
import { VENUE_NAMES, VENUES, type VenueName } from '../../src/domain/markets/venue.ts';
import { MAX_OPEN_WALKS } from '../../src/store/series/venue-backfill.ts';

export interface BackfillOptions {
  venue: VenueName;
  /** Epoch milliseconds. */
  sinceMs: number;
  marketIds?: readonly string[];
  json: boolean;
}

/** The venues whose older trades can be read. */
const WITH_HISTORY = VENUE_NAMES.filter((name) => VENUES[name].capabilities.history);

export const OPTIONS = {
  venue: { value: 'VENUE', choices: VENUE_NAMES },
  since: { value: 'TIME' },
  markets: { value: 'ID,ID,…' },
  json: {},
};

export const USAGE = `usage: oddswire backfill --venue VENUE --since TIME [--markets ID,ID,…] [--json]

  Requests the trades of a venue since TIME that are older than its live polls, and waits until the pollers have read them.
  VENUE is one of ${WITH_HISTORY.join(', ')}.
  TIME is a date or a time in ISO 8601 (2026-06-01, 2026-06-01T12:00Z), an age (90d) or epoch seconds.
  --markets ID,ID,…  only these markets; by default every stored market of the venue
  --json             the summary as one JSON object, with the markets that are not stored back to TIME

  The pollers read at the share of the venue's rate that history has, and requests of clients come first. The command only requests
  the walks, at most ${MAX_OPEN_WALKS} at a time: after an interruption the same command continues, and several runs at once share the work.
  Exit codes: 0 all markets are stored as far as the venue serves them, 1 walks of some markets failed, 130 stopped by Ctrl-C.`;

/** Parses the arguments of `oddswire backfill`. @throws UsageError that names every problem */
export function parseBackfillArguments(argv: readonly string[], nowMs: number): BackfillOptions {
  return parse(argv, { options: OPTIONS }, (given) => {
    const { texts, flags, problems } = given;
    const venue = choiceOf(given, 'venue', VENUE_NAMES);
    if (!texts.has('venue')) problems.push(`--venue must be one of ${WITH_HISTORY.join(', ')}`);
    if (venue !== undefined && !WITH_HISTORY.includes(venue)) {
      problems.push(`${venue} has no history of trades: --venue must be one of ${WITH_HISTORY.join(', ')}`);
    }
    const since = pastOf(given, 'since', nowMs);
    if (!texts.has('since')) problems.push('--since must be a date such as 2026-06-01');
    if (since !== undefined && since * 1_000 >= nowMs) problems.push('--since must be in the past');
    const marketIds = texts.get('markets')?.split(',');
    if (marketIds?.includes('')) problems.push('--markets must be ids of markets with a comma between them');
    if (venue === undefined || since === undefined) throw new UsageError(problems);
    return {
      venue,
      sinceMs: since * 1_000,
      json: flags.has('json'),
      ...present({ marketIds: marketIds && [...new Set(marketIds)] }),
    };
  });
}
