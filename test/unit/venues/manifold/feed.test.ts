import { describe, expect, it } from 'vitest';
import { createManifoldSession } from '../../../../src/venues/manifold/feed/feed.ts';
import { MUTATIONS, mutateAt, representatives } from '../../../conformance/venue-adapter/mutations.ts';
import { checkReading } from '../../../conformance/venue-feed/replay.ts';

/** Messages by the documentation of the venue; no recording exists. */
const NOW_MS = Date.UTC(2026, 10, 20);
const BET = {
  id: 'betA',
  contractId: 'binary1',
  createdTime: NOW_MS - 50,
  amount: 10,
  shares: 20,
  outcome: 'YES',
  probBefore: 0.5,
  probAfter: 0.52,
  isRedemption: false,
  fills: [{ matchedBetId: null, amount: 10, shares: 20, timestamp: NOW_MS - 50 }],
};
const broadcast = (topic: string, data: object) => ({ type: 'broadcast', topic, data });
const MESSAGES = [
  broadcast('global/new-bet', { bets: [BET] }),
  broadcast('global/updated-contract', { contract: { id: 'binary1', prob: 0.61 } }),
  broadcast('global/updated-contract', { contract: { id: 'binary1', isResolved: true, resolution: 'YES' } }),
  broadcast('global/new-contract', { contract: { id: 'fresh1' }, creator: { id: 'someone' } }),
  broadcast('contract/multi1/updated-answers', { answers: [{ id: 'answer1', prob: 0.2 }] }),
  { type: 'ack', txid: 1, success: true },
  { type: 'ack', success: false, error: 'parse error' },
];

function session() {
  const created = createManifoldSession();
  created.subscribe(
    [
      { marketId: 'binary1', outcomeIds: ['binary1:YES', 'binary1:NO'] },
      { marketId: 'multi1', outcomeIds: ['multi1:answer1', 'multi1:answer2'] },
    ],
    NOW_MS,
  );
  return created;
}

const take = (message: unknown) => session().take(JSON.stringify(message), NOW_MS);

describe('the Manifold session', () => {
  it('reads a bet as a trade and as the prices of both outcomes', () => {
    const { updates } = take(MESSAGES[0]);
    expect(updates).toEqual([
      {
        kind: 'trade',
        record: { tradeId: 'betA', outcomeId: 'binary1:YES', tsMs: NOW_MS - 50, price: '0.5', size: '20', side: 'buy' },
      },
      { kind: 'quote', record: { outcomeId: 'binary1:YES', asOfMs: NOW_MS - 50, price: '0.52' } },
      { kind: 'quote', record: { outcomeId: 'binary1:NO', asOfMs: NOW_MS - 50, price: '0.48' } },
    ]);
  });

  it('keeps the last of several prices with one time of the venue', () => {
    const created = session();
    const pricesOf = (prob: number) => {
      const frame = broadcast('contract/multi1/updated-answers', { answers: [{ id: 'answer1', prob }] });
      return created.take(JSON.stringify(frame), NOW_MS).updates;
    };
    const records = [0.2, 0.3, 0.4, 0.5, 0.6].flatMap((prob) => pricesOf(prob));
    expect(records).toEqual(
      ['0.2', '0.3', '0.4', '0.5', '0.6'].map((price, n) => ({
        kind: 'quote',
        record: { outcomeId: 'multi1:answer1', asOfMs: NOW_MS + n, price },
      })),
    );
  });

  it('reads the probability of an answer', () => {
    expect(take(MESSAGES[4]).updates).toEqual([
      { kind: 'quote', record: { outcomeId: 'multi1:answer1', asOfMs: NOW_MS, price: '0.2' } },
    ]);
  });

  it('requests a poll of a contract that is new or whose state changed', () => {
    expect(take(MESSAGES[2]).updates).toEqual([{ kind: 'market', marketId: 'binary1', change: 'updated' }]);
    expect(take(MESSAGES[3]).updates).toEqual([{ kind: 'market', marketId: 'fresh1', change: 'created' }]);
  });

  it('skips a bet that is no trade, with the reason of the polls', () => {
    const redemption = broadcast('global/new-bet', { bets: [{ ...BET, isRedemption: true }] });
    expect(take(redemption)).toMatchObject({ received: 1, applied: 0, skipped: ['redemption'] });
  });

  it('reports a refused message', () => {
    const { notices, skipped } = take(MESSAGES[6]);
    expect(notices).toEqual([{ kind: 'error', code: 'ack', message: 'parse error', isFinal: false }]);
    expect(skipped).toEqual(['venue_error']);
  });

  it('survives every mutation of every field', () => {
    for (const { record, paths } of representatives(MESSAGES)) {
      for (const path of paths) {
        for (const mutation of MUTATIONS) {
          const created = session();
          const frame = JSON.stringify(mutateAt(record, path, mutation)) ?? '';
          checkReading(created, created.take(frame, NOW_MS), NOW_MS);
        }
      }
    }
  });
});
