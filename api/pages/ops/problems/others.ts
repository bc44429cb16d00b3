import { html, time } from '../../kit/html.ts';
import { failureSubject } from '../overview-archive.ts';
import {
  type Area,
  count,
  isSilent,
  OPTIONAL_PROCESS,
  type OpsProblem,
  PROCESSES,
  type ProblemFacts,
} from './facts.ts';

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

/** A silent process counts this long as missing while another one of its kind works: it may have been removed on purpose. */
const MISSED_MS = 3_600_000;

type Kind = (typeof PROCESSES)[number];

const WORK_OF: Readonly<Record<Kind, string>> = {
  api: 'Requests and streams of clients, and these pages.',
  poller: 'Markets, prices and trades of every venue: they are not read.',
  streamer: 'Prices come from polls, and are older.',
  aggregator: 'Candles, snapshots, streams and the archive.',
  alerter: 'Alerts: none fires.',
  deliverer: 'Deliveries: no webhook gets an event.',
};
/** The pages that show the loss of a kind of process. */
const AREA_OF: Readonly<Record<Kind, Area>> = {
  api: 'processes',
  poller: 'venues',
  streamer: 'venues',
  aggregator: 'stages',
  alerter: 'alerts',
  deliverer: 'deliveries',
};

export function missingDependencies({ missing }: ProblemFacts): OpsProblem[] {
  return missing.map((name) => ({
    since: null,
    sentence: `The ${name} does not answer.`,
    affects: name === 'database' ? 'Everything: no process can read or write.' : 'Wake-ups: work waits for the timers.',
    action: `Look whether the server of the ${name} runs and can be reached from this machine.`,
    link: '/ops',
    area: 'processes',
    isLate: true,
  }));
}

export function silentProcesses({ processes }: ProblemFacts): OpsProblem[] {
  return PROCESSES.flatMap((kind): OpsProblem[] => {
    const rows = processes.filter(({ process }) => process === kind);
    const silent = rows.filter((row) => isSilent(row) && !row.isReplaced);
    const link = '/ops#processes';
    const affects = WORK_OF[kind];
    const common = { area: AREA_OF[kind], isLate: true } as const;
    if (rows.some((row) => !isSilent(row))) {
      return silent
        .filter(({ silentMs }) => silentMs < MISSED_MS)
        .map(({ seenAt, host, pid }) => ({
          since: seenAt,
          sentence: html`One ${kind} of several stopped: process ${pid} on <code>${host}</code> sends no heartbeat.`,
          affects: `The work of the ${kind} goes to the others of its kind.`,
          action: `Start it again, or look at its last log lines.`,
          link,
          host,
          ...common,
        }));
    }
    const last = silent.toSorted((a, b) => a.silentMs - b.silentMs)[0];
    if (last === undefined && kind === OPTIONAL_PROCESS) return [];
    if (last === undefined) {
      const sentence = `No ${kind} runs: no heartbeat is known.`;
      return [{ since: null, sentence, affects, action: `Start a ${kind}.`, link, ...common }];
    }
    const { seenAt, host, pid } = last;
    const sentence = html`The ${kind} stopped: process ${pid} on <code>${host}</code> sends no heartbeat.`;
    const action = `Start it again; its last log lines have the reason.`;
    return [{ since: seenAt, sentence, affects, action, link, host, ...common }];
  });
}
