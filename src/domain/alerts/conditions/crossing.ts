import { reachedContent } from '../../webhooks/chat-values.ts';
import {
  isAtLeast,
  isAtMost,
  narrower,
  type OutcomeCondition,
  type ProbeFacts,
  type ProbeRange,
  wider,
} from '../condition.ts';

/** The thresholds between the price before the new observations and theirs. */
function crossed({ low, high, before }: ProbeFacts): ProbeRange | null {
  const [least, greatest] = [Math.min(low, before ?? low), Math.max(high, before ?? high)];
  return least === greatest ? null : { from: narrower(least), to: wider(greatest) };
}

/** The price rises from below a target to it. */
export const crossesAbove: OutcomeCondition = {
  of: 'outcome',
  label: 'Price: rises to a target',
  required: ['price'],
  threshold: () => 'price',
  isState: false,
  probe: () => 'crosses_above',
  probes: { crosses_above: { crosses: 'above', range: crossed } },
  needs: () => ({ of: 'price', side: 'at_least', isCrossing: true }),
  evaluation: ({ threshold }) => ({
    measure: ({ price }, before) =>
      before !== undefined && !isAtLeast(before, threshold) && isAtLeast(price, threshold)
        ? { fromPrice: before }
        : undefined,
  }),
  sentence: ({ price }, words) => `${words.subject} rises to ${words.price(price)}`,
  chat: (alert) => reachedContent(alert, 'crossed above'),
};

/** The price falls from above a target to it. */
export const crossesBelow: OutcomeCondition = {
  of: 'outcome',
  label: 'Price: falls to a target',
  required: ['price'],
  threshold: () => 'price',
  isState: false,
  probe: () => 'crosses_below',
  probes: { crosses_below: { crosses: 'below', range: crossed } },
  needs: () => ({ of: 'price', side: 'at_most', isCrossing: true }),
  evaluation: ({ threshold }) => ({
    measure: ({ price }, before) =>
      before !== undefined && !isAtMost(before, threshold) && isAtMost(price, threshold)
        ? { fromPrice: before }
        : undefined,
  }),
  sentence: ({ price }, words) => `${words.subject} falls to ${words.price(price)}`,
  chat: (alert) => reachedContent(alert, 'crossed below'),
};
