import { parse } from '../cli/arguments.ts';
import { print } from '../cli/output.ts';
import { ConfigError } from '../src/config/config.ts';
import { printable } from '../src/domain/values/text.ts';
import { listApiKeys } from '../src/store/accounts/key-lists.ts';
import { differingKeys, keysInUse } from '../src/store/accounts/key-ring.ts';
import { schemaRights, schemaVersion, sequenceState } from '../src/store/db/restored-schema.ts';
import { stageStates } from '../src/store/marks/backlog.ts';
import { STAGES } from '../src/store/marks/detail.ts';
import { newestRows, pendingWork } from '../src/store/ops/restored-data.ts';
import { createSecretBox } from '../src/webhooks/secret-box.ts';
import { keyRingOf } from './keys/sealed.ts';
import { type CommandContext, operatorCommand } from './operator-command.ts';

/** A line of `oddswire restore-check`. */
interface Finding {
  readonly check: string;
  /** A note needs a decision or no action; a problem prevents a sound start; empty means that no data could be checked. */
  readonly state: 'ok' | 'problem' | 'note' | 'empty';
  readonly text: string;
}

/** A row of the future by more than this shows a wrong clock. */
const CLOCK_TOLERANCE_SECONDS = 60;

const OPTIONS = { json: {} };

/** `oddswire restore-check`: whether a restored database is complete and usable, and the consequences of its age. */
export const command = operatorCommand<{ json: boolean }>({
  name: 'restore-check',
  usage: `usage: oddswire restore-check [--json]

  Checks a restored database before the processes start, and writes nothing: version of the schema, keys of SECRETS_KEYS, owner
  and rights, sequences. Prints the age of the backup, the API keys that are valid again, the alerts that may fire again, the
  pending deliveries, and the state from which the queues are rebuilt.
  Needs the variables of a process. Exit code: 0 no problem, 1 problems, 3 no problem but also no rows to check.`,
  options: OPTIONS,
  parse: (argv) => parse(argv, { options: OPTIONS }, ({ flags }) => ({ json: flags.has('json') })),
  async run({ json }, context) {
    const findings = await findingsOf(context);
    await print(json ? `${JSON.stringify(findings)}\n` : findingsText(findings));
    if (findings.some(({ state }) => state === 'problem')) return 1;
    return findings.some(({ state }) => state === 'empty') ? 3 : 0;
  },
});

/** The later checks need the tables of this release. */
async function findingsOf(context: CommandContext): Promise<Finding[]> {
  const schema = await checkSchema(context);
  if (schema.state === 'problem') return [schema];
  return [
    schema,
    ...(await checkRights(context)),
    await checkSequences(context),
    await checkKeys(context),
    ...(await ageOf(context)),
    ...(await keysAgain(context)),
    ...(await workAgain(context)),
  ];
}

async function checkSchema({ db }: CommandContext): Promise<Finding> {
  const version = await schemaVersion(db);
  const problem = (text: string): Finding => ({ check: 'schema', state: 'problem', text });
  if (version === null) return problem('no tables: the dump is not restored into this database');
  if (version.unknown.length > 0) return problem(`made by a newer release: it knows ${version.unknown.join(', ')}`);
  if (version.missing.length > 0) {
    return problem(`lacks ${version.missing.join(', ')}: run \`oddswire migrate\`, then this command again`);
  }
  return {
    check: 'schema',
    state: 'ok',
    text: `${version.applied.length} migrations, up to ${version.applied.at(-1)}`,
  };
}

async function checkRights({ db }: CommandContext): Promise<Finding[]> {
  const { role, owners, unusable, mayCreatePartitions } = await schemaRights(db);
  const check = 'owner';
  const findings: Finding[] = [];
  const [main, ...others] = owners;
  if (others.length > 0) {
    const text = owners.map(({ owner, things }) => `${owner} (${things})`).join(', ');
    findings.push({ check, state: 'problem', text: `tables and sequences have several owners: ${text}` });
  } else if (main) {
    findings.push({ check, state: 'ok', text: `${main.owner} owns ${main.things} tables and sequences` });
  }
  if (main && !main.mayCreate) {
    const text = `${main.owner} may not create tables in the schema public: create the database with its owner (createdb -O ${main.owner})`;
    findings.push({ check, state: 'problem', text });
  }
  if (main && !main.isOurs && !mayCreatePartitions) {
    findings.push({ check, state: 'problem', text: `${role} is not ${main.owner}, so it cannot create partitions` });
  }
  const text =
    unusable.length > 0 ? `${role} may not use ${unusable.join(', ')}` : `${role} may use all tables and sequences`;
  return [...findings, { check: 'rights', state: unusable.length > 0 ? 'problem' : 'ok', text }];
}

async function checkSequences({ db }: CommandContext): Promise<Finding> {
  const { checked, late } = await sequenceState(db);
  const check = 'sequences';
  if (checked === 0)
    return { check, state: 'problem', text: 'no sequence belongs to a table: the dump is not complete' };
  if (late.length === 0) return { check, state: 'ok', text: `${checked} sequences are not behind their tables` };
  const each = late.map(({ name, lastValue, highest }) => `${name} is at ${lastValue}, its table at ${highest}`);
  return { check, state: 'problem', text: `${each.join('; ')}: set them with setval` };
}

async function checkKeys(context: CommandContext): Promise<Finding> {
  const check = 'SECRETS_KEYS';
  const used = [...new Set((await keysInUse(context.db)).map(({ kid }) => kid))];
  const inUse = used.length === 0 ? 'no sealed values, so none was compared' : `sealed values use ${used.join(', ')}`;
  const problem = (text: string): Finding => ({ check, state: 'problem', text: `${inUse}; ${text}` });
  try {
    const box = createSecretBox(await keyRingOf(context));
    const missing = used.filter((kid) => !box.kids.includes(kid));
    if (missing.length > 0) return problem(`the ring lacks ${missing.join(', ')}`);
    const differing = (await differingKeys(context.db, box)).map(({ kid }) => kid);
    if (differing.length > 0) return problem(`the ring has other bytes for ${differing.join(', ')}`);
    return { check, state: used.length === 0 ? 'note' : 'ok', text: `${inUse}; the ring has ${box.kids.join(', ')}` };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return problem(error.problems.join('; '));
  }
}

async function ageOf({ db }: CommandContext): Promise<Finding[]> {
  const rows = await newestRows(db);
  const ages = rows.flatMap(({ ageSeconds }) => (ageSeconds === null ? [] : [ageSeconds]));
  const newest = rows
    .map(({ stage, at }) => `${stage} ${at === null ? 'none' : at.toISOString().slice(0, 19).concat('Z')}`)
    .join(', ');
  const findings: Finding[] = [{ check: 'newest rows', state: 'note', text: newest }];
  const age = Math.min(...ages);
  if (age < -CLOCK_TOLERANCE_SECONDS) {
    const text = `the newest row is ${sayAge(-age)} in the future: check the clock of the database`;
    return [...findings, { check: 'age', state: 'problem', text }];
  }
  if (ages.length === 0) {
    return [...findings, { check: 'age', state: 'empty', text: 'the database has no rows: nothing was compared' }];
  }
  const text = `the backup is at least ${sayAge(age)} old`;
  return [...findings, { check: 'age', state: 'note', text }];
}

async function keysAgain({ db }: CommandContext): Promise<Finding[]> {
  const nowMs = Date.now();
  const valid = (await listApiKeys(db)).filter(
    ({ revokedAt, expiresAt }) => revokedAt === null && (expiresAt === null || expiresAt.getTime() > nowMs),
  );
  const check = 'API keys';
  if (valid.length === 0) return [{ check, state: 'note', text: 'no valid keys' }];
  const day = (at: Date | null) => at?.toISOString().slice(0, 10) ?? 'never';
  return [
    {
      check,
      state: 'note',
      text: `${valid.length} are valid, also those that were revoked after the backup: revoke these again (oddswire keys revoke ID)`,
    },
    ...valid.map(({ id, account, name, createdAt, lastUsedAt }): Finding => {
      const text = `${id} of ${account}: ${name}, created ${day(createdAt)}, last used ${day(lastUsedAt)}`;
      return { check, state: 'note', text };
    }),
  ];
}

async function workAgain({ db, config }: CommandContext): Promise<Finding[]> {
  const work = await pendingWork(db);
  const stages = await stageStates(db, STAGES);
  const marks = stages.map(({ stage, waiting, deadLetters }) => {
    const dead = deadLetters === 0 ? '' : ` (and ${deadLetters} dead letters)`;
    return `${waiting} marks of ${stage}${dead}`;
  });
  const place = config.queues.redisUrl === undefined ? 'the schema bullmq' : 'Redis';
  return [
    {
      check: 'alerts',
      state: 'note',
      text:
        `${work.activeAlerts} of ${work.alertAccounts} accounts are active; the stored prices meet ${work.metAlerts} of them. ` +
        'An alert that fired after the backup fires again, under the same event id',
    },
    {
      check: 'deliveries',
      state: 'note',
      text:
        `${work.pendingDeliveries} are pending, ${work.dueDeliveries} of ${work.dueWebhooks} webhooks are due. ` +
        'A delivery that succeeded after the backup is sent again, under the same ids',
    },
    {
      check: 'queues',
      state: 'note',
      text: `jobs in ${place} are wake-ups only. Timers rebuild them: schedules, ${marks.join(', ')}, ${work.dueWebhooks} webhooks with due deliveries, ${work.openWalks} walks through trades, ${work.openBacktests} backtests`,
    },
  ];
}

/** A line per finding, and a last line with the number of problems. */
function findingsText(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.map(
    ({ check, state, text }) => `${state.padEnd('problem'.length)}  ${check.padEnd(width)}  ${printable(text)}\n`,
  );
  const problems = findings.filter(({ state }) => state === 'problem').length;
  const none = findings.some(({ state }) => state === 'empty') ? 'Nothing was compared.' : 'No problems.';
  return `${lines.join('')}${problems === 0 ? none : `Problems: ${problems}.`}\n`;
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** A duration in its largest whole unit. */
function sayAge(seconds: number): string {
  const [unit, size] = UNITS.find(([, length]) => seconds >= length) ?? ['s', 1];
  return `${Math.floor(seconds / size)} ${unit}`;
}
