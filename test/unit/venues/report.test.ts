import { describe, expect, it } from 'vitest';
import { createReport } from '../../../src/venues/report.ts';
import type { EventOf } from '../../support/venue-events.ts';

const receipts: EventOf<'onReceived'>[] = [];
const skips: EventOf<'onSkipped'>[] = [];
const report = createReport('v', {
  onReceived: (event) => void receipts.push(event),
  onSkipped: (event) => void skips.push(event),
});
const receivedBy = (count: () => void) => {
  receipts.length = 0;
  skips.length = 0;
  count();
  return receipts.map((event) => event.count);
};
const batch = (rejected: number, skipped: string[] = []) => ({
  records: [],
  rejected: Array(rejected).fill({ kind: 'books', reason: 'r', detail: '', sample: '' }),
  skipped,
});

describe('report.counted', () => {
  it('counts each raw record once', () => {
    expect(receivedBy(() => report.counted('trades', 7, batch(0)))).toEqual([7]);
    expect(receipts).toEqual([{ venue: 'v', kind: 'trades', count: 7 }]);
  });

  it('counts accepted raw records once per record, and others once', () => {
    expect(receivedBy(() => report.counted('books', 7, batch(1, ['a', 'b']), 2))).toEqual([11]);
    expect(skips.map(({ reason, count }) => [reason, count])).toEqual([
      ['a', 1],
      ['b', 1],
    ]);
  });

  it('reports nothing when nothing was received', () => {
    expect(receivedBy(() => report.counted('books', 0, batch(0), 2))).toEqual([]);
  });
});

describe('report.requested', () => {
  it('counts records of other outcomes as skipped', () => {
    const asked = { records: [{ outcomeId: 'a' }, { outcomeId: 'b' }], rejected: [] };
    expect(
      receivedBy(() => expect(report.requested('prices', asked, ['b']).records).toEqual([{ outcomeId: 'b' }])),
    ).toEqual([]);
    expect(skips).toEqual([{ venue: 'v', kind: 'prices', reason: 'not_requested', count: 1 }]);
  });
});
