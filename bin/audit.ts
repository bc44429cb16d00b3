import { OddswireError } from '../src/domain/values/errors.ts';
import { findMarket } from '../src/store/catalog/market-reads.ts';
import { type AuditedOutcome, auditVenue } from '../src/store/series/candle-audit.ts';
import { compareWithVenue } from './audit/against-venue.ts';
import { AUDIT_OPTIONS, AUDIT_USAGE, type AuditOptions, parseAuditArguments } from './audit/arguments.ts';
import { auditExitCode, createAuditOutput, NOTHING_COMPARED } from './audit/output.ts';
import { describeDifference, differenceJson } from './audit/report.ts';
import { type CommandContext, operatorCommand } from './operator-command.ts';

const DAY_SECONDS = 86_400;
const PROGRESS_EVERY_MS = 1_000;

/** `oddswire audit candles`: compares the stored candles with a fold of the stored trades. */
export const command = operatorCommand<AuditOptions>({
  name: 'audit',
  usage: AUDIT_USAGE,
  verbs: ['candles'],
  options: AUDIT_OPTIONS,
  parse: (argv) => parseAuditArguments(argv, Math.floor(Date.now() / 1000)),
  async run(options, context) {
    const { venue, marketId } = options;
    if (marketId !== undefined && (await findMarket(context.db, [venue], marketId)) === null) {
      throw new OddswireError('market_not_found', `${venue} has no market ${marketId}`);
    }
    return options.against ? compareWithVenue(options, options.against, context) : auditStored(options, context);
  },
});

async function auditStored(options: AuditOptions, { db, config }: CommandContext): Promise<number> {
  const { venue, marketId, repair } = options;
  // Trades below the retention floor were dropped and their candles kept, so they cannot be compared.
  const floor = Math.ceil(Date.now() / 1000 / DAY_SECONDS - config.retention.tradesDays) * DAY_SECONDS;
  const range = { ...options.range, start: Math.max(options.range.start, floor) };
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
