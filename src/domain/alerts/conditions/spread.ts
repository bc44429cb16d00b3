import { subtractDecimals } from '../../values/decimal.ts';
import { joined, numberOf, observed, priceOf, word } from '../../webhooks/chat-values.ts';
import { from, isAtLeast, isAtMost, type OutcomeCondition, upTo } from '../condition.ts';

/** The difference of ask and bid of a quote is on a side of a threshold. */
export const spread: OutcomeCondition = {
  of: 'outcome',
  label: 'Spread of bid and ask',
  required: ['price', 'direction'],
  priceLabel: 'Spread',
  direction: {
    label: 'Fires when the spread is',
    options: [
      ['at_most', 'at most this'],
      ['at_least', 'at least this'],
    ],
  },
  threshold: () => 'price',
  isState: true,
  probe: ({ direction }) => `spread_${direction}`,
  probes: {
    spread_at_most: { range: ({ leastSpread }) => from(leastSpread) },
    spread_at_least: { range: ({ greatestSpread }) => upTo(greatestSpread) },
  },
  needs: ({ direction }) => ({ of: 'spread', side: direction === 'at_most' ? 'at_most' : 'at_least' }),
  evaluation: ({ threshold, direction }) => ({
    measure({ bid, ask }) {
      if (bid === null || ask === null) return undefined;
      const value = subtractDecimals(ask, bid);
      return (direction === 'at_most' ? isAtMost(value, threshold) : isAtLeast(value, threshold))
        ? { value }
        : undefined;
    },
  }),
  sentence: ({ price, direction }, words) =>
    `${words.its('spread')} is at ${direction === 'at_least' ? 'least' : 'most'} ${words.difference(price)}`,
  line: (data) => observed(joined('spread', word(data['targetPrice'])), word(data['value'])),
  chat({ subject, data }) {
    const value = numberOf(data['value']);
    const threshold = joined(data['direction'] === 'at_most' ? 'at most' : 'at least', numberOf(data['targetPrice']));
    return {
      title: joined('Spread alert:', subject, value, `(${threshold})`),
      fields: [priceOf(data), ['Spread', value], ['Threshold', threshold]],
    };
  },
};
