import { reachedContent } from '../../webhooks/chat-values.ts';
import { from, isAtLeast, isAtMost, type OutcomeCondition, upTo } from '../condition.ts';

/** The price is at a target or above it. */
export const above: OutcomeCondition = {
  of: 'outcome',
  label: 'Price: at a target or above',
  required: ['price'],
  threshold: () => 'price',
  isState: true,
  probe: () => 'above',
  probes: { above: { range: ({ high }) => upTo(high) } },
  needs: () => ({ of: 'price', side: 'at_least' }),
  evaluation: ({ threshold }) => ({ measure: ({ price }) => (isAtLeast(price, threshold) ? {} : undefined) }),
  sentence: ({ price }, words) => `${words.subject} reaches ${words.price(price)} or more`,
  chat: (alert) => reachedContent(alert, 'above'),
};

/** The price is at a target or below it. */
export const below: OutcomeCondition = {
  of: 'outcome',
  label: 'Price: at a target or below',
  required: ['price'],
  threshold: () => 'price',
  isState: true,
  probe: () => 'below',
  probes: { below: { range: ({ low }) => from(low) } },
  needs: () => ({ of: 'price', side: 'at_most' }),
  evaluation: ({ threshold }) => ({ measure: ({ price }) => (isAtMost(price, threshold) ? {} : undefined) }),
  sentence: ({ price }, words) => `${words.subject} reaches ${words.price(price)} or less`,
  chat: (alert) => reachedContent(alert, 'below'),
};
