import { html, time } from '../../kit/html.ts';
import { failureSubject } from '../overview-archive.ts';
import { count, type OpsProblem, type ProblemFacts } from './facts.ts';

/** A day is due some hours after its end, and its file takes minutes. A new archive has all former days to make. */
const ARCHIVE_LATE_MS = 4 * 86_400_000;
const AFFECTED = 'Files of these days are missing; Postgres keeps their rows, and needs the space.';

/** Retention keeps the rows that are not archived, so nothing is lost. */
export function failingArchive({ archive, nowMs }: ProblemFacts): OpsProblem[] {
  if (archive === null) return [];
  const { failures, due } = archive;
  const [first] = failures;
  if (first !== undefined) {
    const more =
      failures.length > 1
        ? ` ${count(failures.length - 1, 'other kind of a venue fails', 'other kinds of venues fail')}.`
        : '';
    const sentence = html`The archive fails: ${failureSubject(first)}, ${count(first.failures, 'failure', 'failures')} in a row. <q>${first.message}</q>${more}`;
    const action = html`Mend the cause; <code>oddswire archive check</code> compares the files.`;
    return [
      { since: first.since, sentence, affects: AFFECTED, action, link: '/ops#archive', area: 'archive', tone: 'warn' },
    ];
  }
  if (due.first === null || nowMs - Date.parse(due.first) < ARCHIVE_LATE_MS) return [];
  const sentence = `The archive is late: ${count(due.days, 'day is', 'days are')} due, the first is ${due.first}.`;
  const action = 'Look whether an aggregator runs and has time.';
  return [{ since: null, sentence, affects: AFFECTED, action, link: '/ops#archive', area: 'archive', tone: 'warn' }];
}

export function expiringKeys({ expiringKeys: { keys, total } }: Pick<ProblemFacts, 'expiringKeys'>): OpsProblem[] {
  const more = total - keys.length;
  return [
    ...keys.map(
      ({ id, name, account, expiresAt }): OpsProblem => ({
        since: null,
        sentence: html`Key <code>${id}</code> (${name}) of ${account} is in use and expires at ${time(expiresAt)} UTC.`,
        affects: `The programs of ${account} that use it: they get 401 from then on.`,
        action: 'Tell the owner to make another key and to change the programs.',
        link: `/ops/keys?${new URLSearchParams({ account }).toString()}`,
        area: 'keys',
        tone: 'warn',
      }),
    ),
    ...(more <= 0
      ? []
      : [
          {
            since: null,
            sentence: `${count(more, 'more key', 'more keys')} in use ${more === 1 ? 'expires' : 'expire'} within three days.`,
            affects: 'The programs that use them.',
            action: 'Look at the list of keys.',
            link: '/ops/keys',
            area: 'keys' as const,
            tone: 'warn' as const,
          },
        ]),
  ];
}

/** The process died or lost the database during the action. */
export function unfinishedActions({ unfinished: { first, total } }: ProblemFacts): OpsProblem[] {
  if (first === null) return [];
  const { at, action, target } = first;
  const others = total > 1 ? ` ${count(total - 1, 'other action', 'other actions')} of the last day too.` : '';
  return [
    {
      since: at,
      sentence: html`The action <code>${action}</code> on <span class="long">${target}</span> has no end.${others}`,
      affects: 'It may be done in part: the process died or lost the database during it.',
      action: 'Look at its subject, and repeat it.',
      link: '/ops/audit?status=started',
      area: 'audit',
      tone: 'warn',
    },
  ];
}
