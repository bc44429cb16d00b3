import {
  isCorrection,
  joined,
  resolutionFacts,
  resolutionFields,
  statusFacts,
  statusFields,
  textOf,
} from '../../webhooks/chat-values.ts';
import type { MarketCondition } from '../condition.ts';

const REPORTED = new Set(['halted', 'closed', 'resolved', 'settled']);

/** The market halts, closes or gets its result. The settlement of a resolved market is not reported. */
export const status: MarketCondition = {
  of: 'market',
  label: 'The market halts, closes or gets its result',
  required: [],
  threshold: () => null,
  probe: () => 'status',
  needsScope: false,
  isReported: (change) =>
    change.former !== null &&
    change.former !== change.status &&
    REPORTED.has(change.status) &&
    !(change.status === 'settled' && change.former === 'resolved'),
  sentence: (_, { subject }) => `${subject} halts, closes or gets its result`,
  chat: ({ name, data, facts }) => ({
    title: joined(isCorrection(data) ? 'Correction:' : 'Market alert:', textOf(data['status']), '·', name),
    fields: statusFields(data, facts),
  }),
  line: (data) => joined('status', statusFacts(data)),
};

/** A market appears. */
export const newMarket: MarketCondition = {
  of: 'market',
  label: 'A new market',
  required: [],
  threshold: () => null,
  probe: () => 'new_market',
  needsScope: true,
  isReported: ({ former }) => former === null,
  sentence: (_, { subject }) => `${subject} appears`,
  chat: ({ name, data, facts }) => ({
    title: `New market: ${name}`,
    fields: [['Venue', textOf(data['venue'])], ...statusFields(data, facts)],
  }),
  line: (data) => joined('new_market', statusFacts(data)),
};

/** The resolution of the market reaches one of the named states. */
export const resolution: MarketCondition = {
  of: 'market',
  label: 'The result is proposed, disputed, determined or paid',
  required: ['states'],
  threshold: () => null,
  probe: () => 'resolution',
  needsScope: false,
  isReported: ({ former, reached }, states = []) => former !== null && reached.some((state) => states.includes(state)),
  sentence: ({ states = [] }, words) => `${words.its('result')} is ${states.join(' or ')}`,
  chat: ({ name, data }) => ({
    title: joined('Result:', textOf(data['resolutionState']), '·', name),
    fields: resolutionFields(data),
  }),
  line: (data) => joined('resolution', resolutionFacts(data)),
};
