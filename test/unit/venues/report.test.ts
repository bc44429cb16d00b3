import { describe, expect, it } from 'vitest';
import type { ReceiptEvent } from '../../../src/venues/observer.ts';
import { createReport } from '../../../src/venues/report.ts';

describe('report.received', () => {
  const receipts: ReceiptEvent[] = [];
  const report = createReport('v', { onReceived: (event) => void receipts.push(event) });
  const counted = (count: () => void) => {
    receipts.length = 0;
    count();
    return receipts.map((event) => event.count);
  };

  it('counts each raw record once', () => {
    expect(counted(() => report.received('trades', 7))).toEqual([7]);
    expect(receipts).toEqual([{ venue: 'v', kind: 'trades', count: 7 }]);
  });

  it('counts accepted raw records once per record, and others once', () => {
    expect(counted(() => report.received('books', 7, { rejected: [1], skipped: [2, 3] }, 2))).toEqual([11]);
  });

  it('reports nothing when nothing was received', () => {
    expect(counted(() => report.received('books', 0, { rejected: [] }, 2))).toEqual([]);
  });
});
