import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Message } from '../../../api/streams/frame.ts';
import { Outbox } from '../../../api/streams/outbox.ts';

function message(seq: number, text = 'x'): Message {
  return { type: 'price', seq, head: text, data: text, cursor: '', sse: Buffer.alloc(0) };
}

describe('Outbox', () => {
  it('keeps ascending numbers, the latest state of each key, and every message without a key', () => {
    const offered = fc.array(fc.record({ key: fc.option(fc.constantFrom('a', 'b', 'c')), take: fc.nat({ max: 3 }) }));
    fc.assert(
      fc.property(offered, (offers) => {
        const outbox = new Outbox();
        const taken: { seq: number; conflated: number }[] = [];
        const take = (count: number) => {
          for (const { message: one, conflated } of outbox.take(count, 1_000_000))
            taken.push({ seq: one.seq ?? 0, conflated });
        };
        for (const [index, { key, take: count }] of offers.entries()) {
          outbox.push(message(index + 1), 's', key ?? undefined);
          take(count);
        }
        take(1_000);
        const seqs = taken.map(({ seq }) => seq);
        expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
        expect(taken.reduce((sum, { conflated }) => sum + conflated + 1, 0)).toBe(offers.length);
        const plain = offers.flatMap(({ key }, index) => (key === null ? [index + 1] : []));
        expect(seqs).toEqual(expect.arrayContaining(plain));
        expect([outbox.size, outbox.bytes]).toEqual([0, 0]);
      }),
    );
  });

  it('names each subscription of a replaced state once, and none after its removal', () => {
    const subscriptions = ['a', 'b', 'c'];
    const steps = fc.array(
      fc.record({ to: fc.subarray(subscriptions, { minLength: 1 }), removed: fc.constantFrom(...subscriptions) }),
    );
    fc.assert(
      fc.property(steps, (offers) => {
        const outbox = new Outbox();
        for (const [index, { to, removed }] of offers.entries()) {
          const one = message(index + 1);
          for (const subscription of to) outbox.push(one, subscription, 'state');
          outbox.remove(removed);
          for (const { subscriptions: named } of outbox.take(index % 2, 1_000_000)) {
            expect(named).toEqual([...new Set(named)]);
            expect(named).not.toContain(removed);
          }
        }
      }),
    );
  });

  it('sends a message once to several subscriptions', () => {
    const outbox = new Outbox();
    const one = message(1);
    outbox.push(one, 'a');
    outbox.push(one, 'b');
    expect(outbox.take(10, 1_000)).toEqual([{ message: one, subscriptions: ['a', 'b'], conflated: 0 }]);
  });

  it('takes no more bytes than allowed, but at least one message', () => {
    const outbox = new Outbox();
    for (let seq = 1; seq <= 3; seq++) outbox.push(message(seq, 'x'.repeat(400)), 'a');
    expect(outbox.take(10, 1_000).map(({ message: { seq } }) => seq)).toEqual([1]);
    expect(outbox.take(10, 1).map(({ message: { seq } }) => seq)).toEqual([2]);
  });

  it('drops the messages of a subscription that no other one gets', () => {
    const outbox = new Outbox();
    const shared = message(1);
    outbox.push(shared, 'a');
    outbox.push(shared, 'b');
    outbox.push(message(2), 'a');
    outbox.remove('a');
    expect(outbox.take(10, 1_000)).toEqual([{ message: shared, subscriptions: ['b'], conflated: 0 }]);
    expect(outbox.bytes).toBe(0);
  });
});
