import { multiplyDecimals } from '../../values/decimal.ts';
import { joined, numberOf, observed, prefixed, priceOf, word } from '../../webhooks/chat-values.ts';
import { isAtLeast, type OutcomeCondition, upTo } from '../condition.ts';

/** One trade has a notional of at least a threshold. */
export const trade: OutcomeCondition = {
  of: 'outcome',
  label: 'A large trade',
  required: ['notional'],
  threshold: () => 'notional',
  isState: false,
  probe: () => 'trade',
  probes: { trade: { range: ({ notional }) => upTo(notional) } },
  needs: () => ({ of: 'notional', side: 'at_least' }),
  evaluation: ({ threshold }) => ({
    measure({ price, size }) {
      if (size === null) return undefined;
      const value = multiplyDecimals(price, size);
      return isAtLeast(value, threshold) ? { value } : undefined;
    },
  }),
  sentence: ({ notional }, words) => `one trade${words.after('of')} has ${words.amount(notional)} or more`,
  line: (data) =>
    observed(
      joined('trade', word(data['notional'])),
      joined(word(data['value']), prefixed('at', word(data['currentPrice']))),
    ),
  chat({ subject, data }) {
    const value = numberOf(data['value']);
    const threshold = joined('at least', numberOf(data['notional']));
    return {
      title: joined('Trade alert:', subject, value, `(${threshold})`),
      fields: [priceOf(data), ['Value of the trade', value], ['Threshold', threshold]],
    };
  },
};
