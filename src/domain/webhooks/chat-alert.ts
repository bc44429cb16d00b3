import { span } from '../values/durations.ts';
import {
  type ChatFacts,
  type Content,
  cut,
  type Data,
  type Field,
  joined,
  moveOf,
  numberOf,
  textOf,
} from './chat-values.ts';

/** A long label must not hide the value behind it in a title. */
const MAX_SUBJECT = 60;

interface Alert {
  /** The outcome or the token. */
  subject: string;
  /** The market. */
  name: string;
  data: Data;
  facts: ChatFacts;
}

/** The content of a `price_alert`; undefined for an unknown condition. */
export function alertContent(data: Data, facts: ChatFacts): Content | undefined {
  const name = facts.title ?? textOf(data['title']) ?? '';
  const subject = cut(facts.outcome ?? textOf(data['tokenSymbol']) ?? name, MAX_SUBJECT);
  const content = CONTENT[textOf(data['condition']) ?? '']?.({ subject, name, data, facts });
  return content && { ...content, fields: [['Alert', textOf(data['name'])], ...content.fields] };
}

const CONTENT: Readonly<Record<string, (alert: Alert) => Content>> = {
  above: (alert) => reached(alert, 'above'),
  below: (alert) => reached(alert, 'below'),
  crosses_above: (alert) => reached(alert, 'crossed above'),
  crosses_below: (alert) => reached(alert, 'crossed below'),

  change({ subject, data }) {
    const size = joined(numberOf(data['change']), data['unit'] === 'percent' ? '%' : undefined);
    const within = windowOf(data);
    const verb = data['direction'] === 'up' ? 'rose' : data['direction'] === 'down' ? 'fell' : 'moved';
    return {
      title: joined('Price alert:', subject, verb, 'by at least', size, within),
      fields: [
        priceOf(data),
        moveField(data),
        ['Threshold', joined('at least', size, textOf(data['direction']), within)],
      ],
    };
  },

  spread({ subject, data }) {
    const value = numberOf(data['value']);
    const threshold = joined(data['direction'] === 'at_most' ? 'at most' : 'at least', numberOf(data['targetPrice']));
    return {
      title: joined('Spread alert:', subject, value, `(${threshold})`),
      fields: [priceOf(data), ['Spread', value], ['Threshold', threshold]],
    };
  },

  trade({ subject, data }) {
    const value = numberOf(data['value']);
    const threshold = joined('at least', numberOf(data['notional']));
    return {
      title: joined('Trade alert:', subject, value, `(${threshold})`),
      fields: [priceOf(data), ['Value of the trade', value], ['Threshold', threshold]],
    };
  },

  volume({ subject, data }) {
    const traded = joined(numberOf(data['value']), windowOf(data));
    const times = numberOf(data['times']);
    const threshold =
      times === undefined
        ? joined('at least', numberOf(data['notional']))
        : `at least ${times} × the mean of ${numberOf(data['windows']) ?? ''} windows`;
    return {
      title: joined('Volume alert:', subject, traded, `(${threshold})`),
      fields: [priceOf(data), ['Volume', traded], ['Threshold', threshold]],
    };
  },

  status: ({ name, data, facts }) => ({
    title: joined(isCorrection(data) ? 'Correction:' : 'Market alert:', textOf(data['status']), '·', name),
    fields: statusFields(data, facts),
  }),

  new_market: ({ name, data, facts }) => ({
    title: `New market: ${name}`,
    fields: [['Venue', textOf(data['venue'])], ...statusFields(data, facts)],
  }),
};

/** A price reached its target; of a crossing the price before it is known. */
function reached({ subject, data }: Alert, verb: string): Content {
  const target = numberOf(data['targetPrice']);
  return {
    title: joined('Price alert:', subject, verb, target),
    fields: [priceOf(data), ['Target', target], moveField(data)],
  };
}

function priceOf(data: Data): Field {
  return ['Price', numberOf(data['currentPrice'])];
}

function moveField(data: Data): Field {
  return ['Move', moveOf(numberOf(data['fromPrice']), numberOf(data['currentPrice']))];
}

function windowOf(data: Data): string | undefined {
  const seconds = data['windowSeconds'];
  return typeof seconds === 'number' ? `within ${span(seconds)}` : undefined;
}

/** Whether the event corrects a result that an earlier one reported. */
export function isCorrection(data: Data): boolean {
  return data['correction'] === true;
}

/** The state of a market, as alerts and broadcasts have it. */
export function statusFields(data: Data, { winner, previousWinner }: ChatFacts): Field[] {
  return [
    ['Status', textOf(data['status'])],
    ['Before', textOf(data['previousStatus'])],
    ['Winner', winner ?? textOf(data['winningOutcomeId'])],
    // A result without a winner.
    ['Result', data['resolution'] === 'void' ? 'void' : undefined],
    [
      'Winner before',
      isCorrection(data) ? (previousWinner ?? textOf(data['previousWinningOutcomeId']) ?? 'none') : undefined,
    ],
  ];
}
