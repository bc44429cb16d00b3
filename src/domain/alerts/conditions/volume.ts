import { span } from '../../values/durations.ts';
import { joined, numberOf, observed, priceOf, windowOf, word } from '../../webhooks/chat-values.ts';
import { ANY_THRESHOLD, MAX_WINDOWS_SECONDS, type OutcomeCondition, upTo, windowClass } from '../condition.ts';
import { VolumeWindow } from '../windows.ts';

/** The trades of a window have a notional of at least a threshold, or of a multiple of the mean of the windows before it. */
export const volume: OutcomeCondition = {
  of: 'outcome',
  label: 'Volume within a window',
  required: ['windowSeconds'],
  optional: ['notional', 'times', 'windows'],
  faults({ notional, times, windows, windowSeconds }, addFault) {
    if ((notional === undefined) === (times === undefined)) {
      addFault('notional', 'must be given, or times with windows instead, but not both');
    }
    if (times !== undefined && windows === undefined) addFault('windows', 'is required with times');
    if (windows !== undefined && times === undefined) addFault('windows', 'belongs to times');
    if (
      typeof windows === 'number' &&
      typeof windowSeconds === 'number' &&
      windowSeconds * (windows + 1) > MAX_WINDOWS_SECONDS
    ) {
      addFault('windows', `windowSeconds * (windows + 1) must be at most ${MAX_WINDOWS_SECONDS}`);
    }
  },
  threshold: ({ windows }) => (windows === undefined ? 'notional' : 'times'),
  isState: false,
  probe: ({ windowSeconds, windows }) =>
    windows === undefined ? `volume:${windowClass(windowSeconds)}` : 'volume_times',
  probes: {
    volume: {
      isOfTrades: true,
      range: ({ notional }, window) => (notional === null || !window ? null : upTo(window.notional)),
    },
    volume_times: {
      isOfTrades: true,
      range: ({ notional }) => (notional === null ? null : { from: 0, to: ANY_THRESHOLD }),
    },
  },
  lookbackMs: ({ windowMs = 0, windows = 0 }) => windowMs * (1 + windows),
  needs: () => ({ of: 'notional' }),
  evaluation({ threshold, windowMs = 0, windows = 0 }) {
    const traded = new VolumeWindow(windowMs, windows, threshold);
    return {
      enter({ atMs, price, size }) {
        traded.advance(atMs);
        if (size !== null) traded.push(atMs, price, size);
      },
      measure: ({ size }) => (size !== null && traded.isMet() ? { value: traded.present } : undefined),
      leave(_, isFiring) {
        if (isFiring) traded.restart();
      },
    };
  },
  sentence({ notional, times, windows, windowSeconds }, words) {
    const mean = `${words.number(times)} × the mean of the ${words.number(windows)} windows before`;
    const amount = times === undefined && windows === undefined ? words.amount(notional) : mean;
    const within = windowSeconds === undefined ? '' : ` within ${span(windowSeconds)}`;
    return `${amount} or more is traded${words.after('of')}${within}`;
  },
  line(data) {
    const times = word(data['times']);
    return observed(joined('volume', times === '' ? word(data['notional']) : `${times} times`), word(data['value']));
  },
  chat({ subject, data }) {
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
};
