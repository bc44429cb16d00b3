import { resolve } from 'node:path';
import { parse, UsageError } from '../cli/arguments.ts';
import { print } from '../cli/output.ts';
import { countText, Progress } from '../cli/progress.ts';
import { isDay } from '../cli/spans.ts';
import { type CheckedFinding, type CheckFilter, checkArchive } from '../src/archive/check/check-archive.ts';
import { adoptFolder } from '../src/archive/owner.ts';
import { storeOf } from '../src/archive/store/s3.ts';
import { ARCHIVE_KIND_NAMES } from '../src/domain/archive/kinds.ts';
import { VENUE_NAMES } from '../src/domain/markets/venue.ts';
import { OddswireError } from '../src/domain/values/errors.ts';
import { printable } from '../src/domain/values/text.ts';
import { newLeaseToken } from '../src/store/db/leases.ts';
import { archiveDirOf, operatorCommand } from './operator-command.ts';

const VERBS = ['check', 'adopt'] as const;

interface ArchiveOptions {
  verb: (typeof VERBS)[number];
  filter: CheckFilter;
  dir?: string;
  isRepair: boolean;
  isJson: boolean;
}

const OPTIONS = {
  kind: { value: 'KIND', choices: ARCHIVE_KIND_NAMES },
  venue: { value: 'VENUE', choices: VENUE_NAMES },
  from: { value: 'DATE' },
  to: { value: 'DATE' },
  dir: { value: 'DIR' },
  repair: {},
  json: {},
};

/** `oddswire archive`: checks of the archive by its operator. */
export const command = operatorCommand<ArchiveOptions>({
  name: 'archive',
  usage: `usage: oddswire archive check [--kind KIND] [--venue VENUE] [--from DATE] [--to DATE] [--dir DIR] [--repair] [--json]
       oddswire archive adopt [--dir DIR]

  check compares the files of the archive with their catalog, their manifests, the object store of ARCHIVE_URL, the coverage and the rows of
  Postgres, and prints a line per problem: the place, the problem, the next step. DIR is ARCHIVE_DIR by default. KIND is one of ${ARCHIVE_KIND_NAMES.join(', ')}.
  --repair archives a day again from the rows that Postgres has, and describes folders again. It never loses a row: a file whose rows
  Postgres does not have stays as it is.
  adopt gives the folder and the object store to this database, after a restore: the database that wrote there before must not run any more.
  Exit code: 0 no problem is left, 1 problems, 2 wrong arguments.`,
  verbs: VERBS,
  options: OPTIONS,
  usesArchive: true,
  parse: parseArchiveArguments,
  async run({ verb, filter, isRepair, isJson, ...given }, context) {
    const dir = given.dir ?? archiveDirOf(context);
    if (dir === undefined) throw new OddswireError('archive_off', 'set ARCHIVE_DIR, or name the folder with --dir');
    const store = storeOf(context.config);
    if (verb === 'adopt') {
      await adoptFolder(dir, context.db, store);
      return 0;
    }
    const progress = new Progress();
    const { days, files, rows, findings } = await checkArchive({
      db: context.db,
      dir,
      store,
      filter,
      isRepair,
      log: context.log,
      signal: new AbortController().signal,
      tag: newLeaseToken(null).replaceAll(/\W/g, ''),
      onDay: ({ kind, venue, date }, done, total) => progress.report({ done, total, text: `${kind} ${venue} ${date}` }),
    });
    const open = findings.filter(({ isRepaired }) => !isRepaired);
    const repaired = findings.length - open.length;
    progress.end(
      `${countText(days)} days, ${countText(files)} files, ${countText(rows)} rows: ${countText(open.length)} problems${
        repaired > 0 ? `, ${countText(repaired)} repaired` : ''
      }`,
    );
    await print(
      isJson ? `${JSON.stringify({ days, files, rows, problems: findings.map(jsonOf) })}\n` : textOf(findings),
    );
    return open.length === 0 ? 0 : 1;
  },
});

/** @throws UsageError that names every problem */
export function parseArchiveArguments(argv: readonly string[]): ArchiveOptions {
  return parse(argv, { options: OPTIONS, verbs: VERBS, words: [1, 1] }, ({ words, texts, flags, problems }) => {
    const verb = words[0] === 'adopt' ? 'adopt' : 'check';
    if (verb === 'adopt') {
      const other = [...texts.keys(), ...flags].filter((name) => name !== 'dir');
      problems.push(...other.map((name) => `--${name} is of archive check`));
    }
    const [from, to, dir] = [texts.get('from'), texts.get('to'), texts.get('dir')];
    for (const [name, text] of [['from', from] as const, ['to', to] as const]) {
      if (text !== undefined && !isDay(text)) problems.push(`--${name} must be a day such as 2026-01-31`);
    }
    if (from !== undefined && to !== undefined && from > to) problems.push('--from must not be after --to');
    if (dir === '') problems.push('--dir must not be empty');
    if (problems.length > 0) throw new UsageError(problems);
    const [kind, venue] = [texts.get('kind'), texts.get('venue')];
    return {
      verb,
      filter: {
        kinds: kind === undefined ? undefined : ARCHIVE_KIND_NAMES.filter((name) => name === kind),
        venues: venue === undefined ? undefined : [venue],
        from,
        to,
      },
      ...(dir !== undefined && { dir: resolve(dir) }),
      isRepair: flags.has('repair'),
      isJson: flags.has('json'),
    };
  });
}

function jsonOf({ place, problem, remedy, isRepaired }: CheckedFinding) {
  return { place, problem, remedy, repaired: isRepaired };
}

function textOf(findings: readonly CheckedFinding[]): string {
  return findings
    .map(({ place, problem, remedy, isRepaired }) => `${place}: ${problem}; ${isRepaired ? 'repaired' : remedy}`)
    .map((line) => `${printable(line)}\n`)
    .join('');
}
