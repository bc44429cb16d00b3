import { parse, present } from '../cli/arguments.ts';
import { print } from '../cli/output.ts';
import { pastOf } from '../cli/spans.ts';
import { utc } from '../cli/table.ts';
import { printable } from '../src/domain/values/text.ts';
import { type AuditRow, exportActions } from '../src/store/ops/actions.ts';
import { operatorCommand } from './operator-command.ts';

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
  return parse(argv, { options: OPTIONS }, (given) => {
    const [since, until] = [pastOf(given, 'since', nowMs), pastOf(given, 'until', nowMs)];
    return {
      sinceMs: (since ?? 0) * 1_000,
      untilMs: until === undefined ? nowMs + 1 : until * 1_000,
      json: given.flags.has('json'),
      ...present({ account: given.texts.get('account') }),
    };
  });
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
  const line = `${utc(at)}  ${status.padEnd(7)}  ${action}  ${target}  (${who})  ${result}`;
  return `${printable(line.trimEnd())}\n`;
}
