import { choiceOf, parse, present, UsageError, wholeNumberOf } from '../cli/arguments.ts';
import { pastOf } from '../cli/spans.ts';
import { VENUE_NAMES } from '../src/domain/markets/venue.ts';
import { OddswireError } from '../src/domain/values/errors.ts';
import { findMarket } from '../src/store/catalog/market-reads.ts';
import { readSeam } from '../src/store/db/partitions.ts';
import { type AuditedOutcome, auditVenue } from '../src/store/series/candle-audit.ts';
import { compareWithVenue } from './audit/against-venue.ts';
import {
  type AuditOptions,
  auditExitCode,
  createAuditOutput,
  describeDifference,
  differenceJson,
  NOTHING_COMPARED,
} from './audit/output.ts';
import { type CommandContext, operatorCommand } from './operator-command.ts';

const DAY_SECONDS = 86_400;
const PROGRESS_EVERY_MS = 1_000;

const OPTIONS = {
  venue: { value: 'VENUE', choices: VENUE_NAMES },
  market: { value: 'ID' },
  from: { value: 'TIME' },
  to: { value: 'TIME' },
  against: { value: 'SOURCE' },
  limit: { value: 'N' },
  repair: {},
  json: {},
};

const DEFAULT_SECONDS = 7 * 86_400;
const DEFAULT_LIMIT = 50;

/** `oddswire audit candles`: compares the stored candles with a fold of the stored trades. */
export const command = operatorCommand<AuditOptions>({
  name: 'audit',
  usage: `usage: oddswire audit candles --venue VENUE [--market ID] [--from TIME] [--to TIME] [--repair] [--json] [--limit N]
       oddswire audit candles --venue kalshi --market TICKER [--from TIME] [--to TIME] --against venue|FILE

  Compares the stored candles with a fold of the stored trades and prints the differences; --repair folds those minutes again.
  --against compares them with the venue's own candlesticks instead, requested from the venue or read from a recorded answer.
  TIME is an age (90m, 24h, 7d), epoch seconds or ISO 8601 (2026-11-01, 2026-11-01T12:00Z); the default is the last 7 days.
  --json prints one object: {"differences": [...], "found": N, "outcomes": N, "compared": N, "repaired": false}; with --against
  only "compared" beside the differences. --limit N prints N differences at most (default 50).
  Exit code: 0 no differences or all repaired, 1 differences or no such market, 3 nothing was compared.`,
  verbs: ['candles'],
  options: OPTIONS,
  parse: (argv) => parseAuditArguments(argv, Date.now()),
  async run(options, context) {
    const { venue, marketId } = options;
    if (marketId !== undefined && (await findMarket(context.db, [venue], marketId)) === null) {
      throw new OddswireError('market_not_found', `${venue} has no market ${marketId}`);
    }
    return options.against ? compareWithVenue(options, options.against, context) : auditStored(options, context);
  },
});

/** Parses the arguments of `oddswire audit`. @throws UsageError that names every problem */
export function parseAuditArguments(argv: readonly string[], nowMs: number): AuditOptions {
  return parse(argv, { options: OPTIONS, words: [0, 1] }, (given) => {
    const { words, texts, flags, problems } = given;
    if (words[0] !== 'candles') problems.push('name the data to audit: candles');
    const venue = choiceOf(given, 'venue', VENUE_NAMES);
    if (!texts.has('venue')) problems.push(`--venue must be one of ${VENUE_NAMES.join(', ')}`);
    const end = pastOf(given, 'to', nowMs) ?? Math.floor(nowMs / 1_000) + 1;
    const start = pastOf(given, 'from', nowMs) ?? end - DEFAULT_SECONDS;
    if (start >= end) problems.push('--from must be before --to');
    const [market, against] = [texts.get('market'), texts.get('against')];
    if (against !== undefined && flags.has('repair'))
      problems.push('--repair uses our own trades and cannot be combined with --against');
    if (against !== undefined && (venue !== 'kalshi' || market === undefined)) {
      problems.push('--against needs --venue kalshi, which has candles of its own, and --market');
    }
    const limit = wholeNumberOf(given, 'limit', [0, 1_000_000_000]) ?? DEFAULT_LIMIT;
    if (venue === undefined) throw new UsageError(problems);
    return {
      venue,
      range: { start, end },
      repair: flags.has('repair'),
      json: flags.has('json'),
      limit,
      ...present({ marketId: market, against }),
    };
  });
}

async function auditStored(options: AuditOptions, { db, config }: CommandContext): Promise<number> {
  const { venue, marketId, repair } = options;
  // Trades below the retention floor were dropped and their candles kept, so they cannot be compared.
  const floor = Math.ceil(Date.now() / 1000 / DAY_SECONDS - config.retention.tradesDays) * DAY_SECONDS;
  const seam = Math.ceil(((await readSeam(db, 'trades')) ?? 0) / 1000);
  if (seam > options.range.start) {
    process.stderr.write(
      `the trades before ${new Date(seam * 1000).toISOString()} are in files of the archive: not compared\n`,
    );
  }
  const range = { ...options.range, start: Math.max(options.range.start, floor, seam) };
  const output = createAuditOutput(options);
  let outcomes = 0;
  let compared = 0;
  let reportedAtMs = performance.now();
  for await (const step of auditVenue(db, { venue, range, repair, ...(marketId !== undefined && { marketId }) })) {
    const byToken = new Map<bigint, AuditedOutcome>(step.outcomes.map((outcome) => [outcome.tokenId, outcome]));
    for (const difference of step.differences) {
      const outcome = byToken.get(difference.tokenId);
      await output.difference(
        () => describeDifference(difference, outcome),
        () => differenceJson(difference, outcome),
      );
    }
    outcomes += step.outcomes.length;
    compared += step.compared;
    if (performance.now() - reportedAtMs > PROGRESS_EVERY_MS) {
      process.stderr.write(`${outcomes} outcomes, ${output.found} differences so far\n`);
      reportedAtMs = performance.now();
    }
  }
  const isRepaired = repair && output.found > 0;
  process.stderr.write(
    compared === 0
      ? `${NOTHING_COMPARED}: ${outcomes} outcomes have no trades or candles in this range, or these wait for a fold\n`
      : `${compared} candles of ${outcomes} outcomes compared, ${output.found} differ${isRepaired ? ', all repaired' : ''}\n`,
  );
  await output.end({ outcomes, compared, repaired: isRepaired });
  return auditExitCode({ compared, differences: repair ? 0 : output.found });
}
