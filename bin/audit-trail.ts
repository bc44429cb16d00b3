import { readArguments, UsageError } from '../cli/arguments.ts';
import { parsePast } from '../cli/spans.ts';
import { printable } from '../src/domain/values/text.ts';
import { type AuditRow, exportActions } from '../src/store/ops/actions.ts';
import { operatorCommand } from './operator-command.ts';
import { print } from './output/print.ts';
import { shortTime } from './output/report-table.ts';

interface AuditTrailOptions {
  /** Epoch milliseconds. */
  sinceMs: number;
  untilMs: number;
  account?: string;
  json: boolean;
}

const OPTIONS = { since: { value: 'TIME' }, until: { value: 'TIME' }, account: { value: 'A' }, json: {} };

/** `oddswire audit-trail`: the export of the audit trail. */
export const command = operatorCommand<AuditTrailOptions>({
  name: 'audit-trail',
  usage: `usage: oddswire audit-trail [--since TIME] [--until TIME] [--account A] [--json]

  Prints the audit trail, the oldest row first: actions on the operator pages, writes of accounts, and actions of commands. An action that
  was recorded at its start has two rows; \`finishes\` of the second one is the \`id\` of the first.
  TIME is an age (90m, 24h, 7d), epoch seconds or ISO 8601 (2026-11-01, 2026-11-01T12:00Z); the default is everything.
  --account A  only requests with the keys of this account
  --json       one JSON object per line`,
  options: OPTIONS,
  parse: (argv) => parseArguments(argv, Date.now()),
  async run({ json, ...range }, { db }) {
    for await (const rows of exportActions(db, range)) await print(rows.map(json ? jsonLine : textLine).join(''));
    return 0;
  },
});

function parseArguments(argv: readonly string[], nowMs: number): AuditTrailOptions {
  const problems: string[] = [];
  const { texts, flags, words } = readArguments(argv, OPTIONS, problems);
  problems.push(...words.map((word) => `unknown argument ${word}`));
  const momentOf = (option: 'since' | 'until', fallback: number): number => {
    const text = texts.get(option);
    if (text === undefined) return fallback;
    const seconds = parsePast(text, nowMs / 1_000);
    if (seconds === null) problems.push(`--${option} must be an age (90m, 24h, 7d), epoch seconds or an ISO 8601 time`);
    return seconds === null ? fallback : seconds * 1_000;
  };
  const sinceMs = momentOf('since', 0);
  const untilMs = momentOf('until', nowMs + 1);
  const account = texts.get('account');
  if (problems.length > 0) throw new UsageError(problems);
  return { sinceMs, untilMs, json: flags.has('json'), ...(account !== undefined && { account }) };
}

function jsonLine(row: AuditRow): string {
  const { pk, at, source, actor, account, role, sessionId, address, action, target, status, result, requestId } = row;
  const { finishes } = row;
  return `${JSON.stringify({
    id: String(pk),
    at,
    source,
    actor,
    account,
    role,
    session: sessionId,
    address,
    action,
    target,
    status,
    result,
    request_id: requestId,
    finishes: finishes === null ? null : String(finishes),
  })}\n`;
}

function textLine({ at, source, actor, account, role, address, action, target, status, result }: AuditRow): string {
  const who = [source, account, actor ?? role, address].filter((part) => part !== null && part !== '').join(' ');
  const line = `${shortTime(at.getTime())}  ${status.padEnd(7)}  ${action}  ${target}  (${who})  ${result}`;
  return `${printable(line.trimEnd())}\n`;
}
