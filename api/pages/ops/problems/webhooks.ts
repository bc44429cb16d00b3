import { type HtmlValue, html } from '../../kit/html.ts';
import { endpointName } from '../../kit/shown-values.ts';
import { count, type OpsProblem, type ProblemFacts } from './facts.ts';

/** A single failure is repaired by the first attempts of the schedule. */
const FAILING_MS = 60_000;
/** Webhooks of one kind of failure that the overview names; the list of webhooks has all. */
const MAX_NAMED = 3;

export function failingWebhooks({
  failing,
  failingTotal,
  nowMs,
}: Pick<ProblemFacts, 'failing' | 'failingTotal' | 'nowMs'>): OpsProblem[] {
  const active = failing.filter(({ status }) => status === 'active');
  const lasting = active.filter(
    ({ failingSince, exhausted }) => exhausted > 0 || nowMs - failingSince.getTime() > FAILING_MS,
  );
  const named = lasting.slice(0, MAX_NAMED);
  const more = failingTotal - (active.length - lasting.length) - named.length;
  return [
    ...named.map(
      ({ id, url, account, failingSince, lastError, lastStatusCode }): OpsProblem => ({
        since: failingSince,
        sentence: html`Webhook <span class="long">${endpointName(url)}</span> of ${account} fails${reason(lastError, lastStatusCode)}.`,
        affects: `Events of ${account}: they wait for the next attempt, and end as failed after the last one.`,
        action: 'Tell the owner what the receiver answers; a failed delivery can be sent again.',
        link: `/ops/webhooks/${encodeURIComponent(id)}`,
        area: 'webhooks',
      }),
    ),
    ...moreOf(more, 'fail'),
  ];
}

export function partlyFailingWebhooks({
  partlyFailing,
  partlyFailingTotal,
}: Pick<ProblemFacts, 'partlyFailing' | 'partlyFailingTotal'>): OpsProblem[] {
  const named = partlyFailing.slice(0, MAX_NAMED);
  return [
    ...named.map(
      ({ id, url, account, since, failed, retrying, lastError, lastStatusCode }): OpsProblem => ({
        since,
        sentence: html`Webhook <span class="long">${endpointName(url)}</span> of ${account} fails in part${reason(lastError, lastStatusCode)}: of the last hour, ${[
          ...(failed > 0 ? [count(failed, 'delivery failed', 'deliveries failed')] : []),
          ...(retrying > 0 ? [count(retrying, 'delivery retries', 'deliveries retry')] : []),
        ].join(' and ')}.`,
        affects: `Some events of ${account} arrive late or not at all.`,
        action: 'Compare the attempts that failed: the receiver may refuse a kind of event, or be slow at times.',
        link: `/ops/webhooks/${encodeURIComponent(id)}`,
        area: 'webhooks',
        tone: 'warn',
      }),
    ),
    ...moreOf(partlyFailingTotal - named.length, 'fail in part').map((problem) => ({
      ...problem,
      tone: 'warn' as const,
    })),
  ];
}

function moreOf(more: number, verb: 'fail' | 'fail in part'): OpsProblem[] {
  if (more <= 0) return [];
  const sentence = `${count(more, 'more webhook', 'more webhooks')} ${more === 1 ? verb.replace('fail', 'fails') : verb}.`;
  const affects = 'The events of their accounts.';
  return [
    {
      since: null,
      sentence,
      affects,
      action: 'Look at the list, worst first.',
      link: '/ops/webhooks',
      area: 'webhooks',
    },
  ];
}

function reason(lastError: string | null, lastStatusCode: number | null): HtmlValue {
  if (lastStatusCode !== null) return ` with status ${lastStatusCode}`;
  return lastError !== null && html` with <code>${lastError}</code>`;
}
