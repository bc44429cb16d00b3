import type { Area, OpsProblem, ProblemFacts } from './facts.ts';
import { hostProblems } from './host.ts';
import { expiringKeys, failingArchive, unfinishedActions } from './others.ts';
import { missingDependencies, silentProcesses } from './processes.ts';
import { failingVenues, troubledFeeds } from './venues.ts';
import { failingWebhooks, partlyFailingWebhooks } from './webhooks.ts';
import { deadLetters, growingBacklogs, lateDeliveries, latePublisher, lateStages, unknownStages } from './work.ts';

/**
 * The kinds of problems, in the order of the page. A kind is a function of the facts: a new kind is one more entry.
 */
const KINDS: readonly ((facts: ProblemFacts) => readonly OpsProblem[])[] = [
  missingDependencies,
  silentProcesses,
  lateStages,
  unknownStages,
  latePublisher,
  lateDeliveries,
  growingBacklogs,
  failingVenues,
  troubledFeeds,
  failingWebhooks,
  partlyFailingWebhooks,
  deadLetters,
  failingArchive,
  expiringKeys,
  unfinishedActions,
];

/** All problems, the machine first where it is the cause of others, and the most severe kinds before the others. */
export function findProblems(facts: ProblemFacts): OpsProblem[] {
  const found = KINDS.flatMap((kind) => kind(facts));
  const ofHosts = hostProblems(
    facts,
    found.some(({ isLate }) => isLate),
  );
  const [cause] = ofHosts.filter(({ isCause }) => isCause);
  const isEffect = ({ isLate, host }: OpsProblem) => isLate && (host === undefined || host === cause?.host);
  const effects = cause === undefined ? [] : found.filter(isEffect);
  const rest = [...ofHosts.filter((each) => each !== cause), ...found.filter((each) => !effects.includes(each))];
  return [
    ...(cause === undefined ? [] : [effects.length === 0 ? cause : { ...cause, effects }]),
    ...rest.filter(({ tone }) => tone !== 'warn'),
    ...rest.filter(({ tone }) => tone === 'warn'),
  ];
}

/** The problems of the subjects of a page. A cause stays when one of its effects is among them. */
export function problemsAbout(problems: readonly OpsProblem[], areas: readonly Area[]): OpsProblem[] {
  const isAbout = ({ area }: OpsProblem) => areas.includes(area);
  return problems.flatMap((problem) => {
    const effects = (problem.effects as readonly OpsProblem[] | undefined)?.filter(isAbout) ?? [];
    if (effects.length > 0) return [{ ...problem, effects }];
    if (!isAbout(problem)) return [];
    const { effects: _, ...own } = problem;
    return [own];
  });
}
