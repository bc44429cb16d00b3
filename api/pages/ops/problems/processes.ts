import { html } from '../../kit/html.ts';
import { type Area, isSilent, OPTIONAL_PROCESS, type OpsProblem, PROCESSES, type ProblemFacts } from './facts.ts';

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
