import { MAX_COUNTED_BACKLOG, MAX_COUNTED_DUE } from '../../../../src/store/ops/overview.ts';
import {
  type Area,
  count,
  grouped,
  isLateStage,
  type OpsProblem,
  OVERDUE_MS,
  type ProblemFacts,
  STAGE_NAME,
} from './facts.ts';

/** The head is at most two seconds old when a change waits at the moment of the read. */
const UNCONFIRMED_MS = 5_000;
/** The growth of a backlog is compared over so many samples, one per minute. */
const GROWTH_SAMPLES = 5;
/** A smaller backlog is the work of some seconds. */
const GROWTH_AT_LEAST = 2_000;

const OUTPUT_OF: Readonly<Record<string, string>> = {
  'fold-candles': 'Candles are older than their trades.',
  'sample-snapshots': 'Snapshots of the last minutes are missing.',
  'evaluate-alerts': 'Alerts fire late; none is lost.',
};

function areaOf(stage: string): Area {
  return stage === 'evaluate-alerts' ? 'alerts' : 'stages';
}

export function lateStages({ stages, nowMs }: ProblemFacts): OpsProblem[] {
  return stages.filter(isLateStage).map(({ stage, oldestMs, waiting }) => ({
    since: typeof oldestMs === 'number' ? new Date(nowMs - oldestMs) : null,
    sentence: `${STAGE_NAME[stage] ?? stage} is late: ${count(waiting, 'mark waits', 'marks wait')}.`,
    affects: OUTPUT_OF[stage] ?? 'The output of the stage is late.',
    action:
      stage === 'evaluate-alerts'
        ? 'Look whether an alerter runs, and start another one.'
        : 'Look whether an aggregator runs, and start another one.',
    link: '/ops#stages',
    area: areaOf(stage),
    isLate: true as const,
  }));
}

/** Without new samples, the wait of a newer mark is unknown. */
export function unknownStages({ stages }: ProblemFacts): OpsProblem[] {
  const names = stages.flatMap(({ stage, oldestMs }) => (oldestMs === 'unknown' ? [STAGE_NAME[stage] ?? stage] : []));
  if (names.length === 0) return [];
  const sentence = `The age of waiting marks is unknown, because no sample of the last two minutes exists: ${names.join(', ')}.`;
  const affects = 'The overview cannot tell whether these stages are late.';
  const action = 'Look whether an aggregator runs: it takes the samples.';
  return [{ since: null, sentence, affects, action, link: '/ops#stages', area: 'stages', tone: 'warn' }];
}

export function latePublisher({ journal: { checkedAt, readAt } }: ProblemFacts): OpsProblem[] {
  if (readAt.getTime() - checkedAt.getTime() <= UNCONFIRMED_MS) return [];
  const sentence = 'The publisher of the journal is late: streams send no heartbeat, and reads use the database.';
  const affects = 'Pages and streams of clients: their prices may be old, and they say so.';
  const action = 'Look whether an aggregator runs; each one can publish.';
  return [{ since: checkedAt, sentence, affects, action, link: '/ops#stages', area: 'stages', isLate: true }];
}

export function lateDeliveries({ load: { due, oldestOverdueMs }, nowMs }: ProblemFacts): OpsProblem[] {
  if (oldestOverdueMs === null || oldestOverdueMs <= OVERDUE_MS) return [];
  const many = due > MAX_COUNTED_DUE ? `more than ${grouped(MAX_COUNTED_DUE)}` : grouped(due);
  return [
    {
      since: new Date(nowMs - oldestOverdueMs),
      sentence: `Deliveries are late: ${many} ${due === 1 ? 'attempt is' : 'attempts are'} due.`,
      affects: 'Receivers get their events late; none is lost.',
      action: 'Look whether a deliverer runs, and start another one.',
      link: '/ops/deliveries?status=pending',
      area: 'deliveries',
      isLate: true,
    },
  ];
}

/** A backlog that rose in every sample and has doubled. */
export function growingBacklogs({ backlog }: ProblemFacts): OpsProblem[] {
  const samples = backlog.slice(-GROWTH_SAMPLES);
  const kinds = [
    { of: 'marks', name: 'marks of stages', link: '/ops#stages', area: 'stages', kind: 'aggregator or alerter' },
    {
      of: 'deliveries',
      name: 'due deliveries',
      link: '/ops/deliveries?status=pending',
      area: 'deliveries',
      kind: 'deliverer',
    },
  ] as const;
  return kinds.flatMap(({ of, name, link, area, kind }): OpsProblem[] => {
    const values = samples.map((sample) => sample[of]);
    const [first, last] = [values[0], values.at(-1)];
    if (values.length < GROWTH_SAMPLES || first === undefined || last === undefined) return [];
    const isRising = values.every((value, index) => index === 0 || value >= (values[index - 1] ?? 0));
    const isGrowth = isRising && last >= GROWTH_AT_LEAST && (last >= 2 * first || last >= MAX_COUNTED_BACKLOG);
    if (!isGrowth) return [];
    const now = last >= MAX_COUNTED_BACKLOG ? `${grouped(MAX_COUNTED_BACKLOG)} or more` : grouped(last);
    return [
      {
        since: samples[0]?.at ?? null,
        sentence: `The backlog of ${name} grows: from ${grouped(first)} to ${now}.`,
        affects: 'More work arrives than is done: its results come later and later.',
        action: `Start another ${kind}.`,
        link,
        area,
        isLate: true,
      },
    ];
  });
}

export function deadLetters({ stages }: ProblemFacts): OpsProblem[] {
  return stages
    .filter(({ deadLetters: dead }) => dead > 0)
    .map(({ stage, deadLetters: dead, deadSince }) => ({
      since: deadSince,
      sentence: `${STAGE_NAME[stage] ?? stage}: ${count(dead, 'mark is', 'marks are')} dead-lettered.`,
      affects: 'The output of these marks is missing until they are put back.',
      action: 'Read their error, repair its cause, and restart a process of the stage: it puts them back.',
      link: '/ops/alerts',
      area: areaOf(stage),
      tone: 'warn' as const,
    }));
}
