import { type AuditedOutcome, auditVenue } from '../src/store/series/candle-audit.ts';
import { compareWithVenue } from './audit-against-venue.ts';
import { AUDIT_USAGE, type AuditOptions, parseAuditArguments } from './audit-arguments.ts';
import { describeDifference, differenceJson } from './audit-report.ts';
import { type CommandContext, runOperatorCommand } from './operator-command.ts';

const DAY_SECONDS = 86_400;
const PROGRESS_EVERY_MS = 1_000;

/** `npm run audit -- candles`: compares the stored candles with a fold of the stored trades. */
await runOperatorCommand<AuditOptions>({
  name: 'audit',
  usage: AUDIT_USAGE,
  parse: (argv) => parseAuditArguments(argv, Math.floor(Date.now() / 1000)),
  run: (options, context) =>
    options.against ? compareWithVenue(options, options.against, context) : auditStored(options, context),
});

async function auditStored(options: AuditOptions, { db, config }: CommandContext): Promise<number> {
  const { venue, marketId, repair, json, limit } = options;
  // Trades below the retention floor were dropped and their candles kept, so they cannot be compared.
  const floor = Math.ceil(Date.now() / 1000 / DAY_SECONDS - config.retention.tradesDays) * DAY_SECONDS;
  const range = { ...options.range, start: Math.max(options.range.start, floor) };
  let outcomes = 0;
  let found = 0;
  let saidAtMs = performance.now();
  for await (const step of auditVenue(db, { venue, range, repair, ...(marketId !== undefined && { marketId }) })) {
    const byToken = new Map<bigint, AuditedOutcome>(step.outcomes.map((outcome) => [outcome.tokenId, outcome]));
    for (const difference of step.differences) {
      found += 1;
      if (found > limit) continue;
      const line = (json ? differenceJson : describeDifference)(difference, byToken.get(difference.tokenId));
      process.stdout.write(`${line}\n`);
    }
    outcomes += step.outcomes.length;
    if (performance.now() - saidAtMs > PROGRESS_EVERY_MS) {
      process.stderr.write(`${outcomes} outcomes, ${found} differences so far\n`);
      saidAtMs = performance.now();
    }
  }
  if (found > limit) process.stderr.write(`${found - limit} more differences are not shown (--limit)\n`);
  const repaired = repair && found > 0 ? ', all repaired' : '';
  process.stderr.write(`${outcomes} outcomes audited, ${found} candles differ${repaired}\n`);
  if (outcomes === 0 && marketId !== undefined) process.stderr.write(`${venue} has no market ${marketId}\n`);
  return found === 0 || repair ? 0 : 1;
}
