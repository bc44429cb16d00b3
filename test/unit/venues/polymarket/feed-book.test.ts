import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareDecimals, decimal } from '../../../../src/domain/values/decimal.ts';
import { createPolymarketSession } from '../../../../src/venues/polymarket/feed/feed.ts';
import { FeedLevels } from '../../../../src/venues/polymarket/feed/levels.ts';

const MARKET = '0xa';
const TOKEN = '17';
const START_MS = 1_790_000_000_000;
/** Longer than a book may differ from its hash. */
const LASTING_MS = 2_500;
const BIDS = [
  { price: '0.40', size: '10' },
  { price: '0.41', size: '5.5' },
];
const ASKS = [
  { price: '0.45', size: '7' },
  { price: '0.44', size: '3' },
];

/** A book message with the venue's hash of it. */
function bookMessage({ minOrderSize = '5', lastTrade = '', atMs = START_MS }) {
  const fields = { market: MARKET, asset_id: TOKEN, timestamp: String(atMs) };
  const context = { min_order_size: minOrderSize, tick_size: '0.01', neg_risk: false, last_trade_price: lastTrade };
  const text = JSON.stringify({ ...fields, hash: '', bids: BIDS, asks: ASKS, ...context });
  const hash = createHash('sha1').update(text).digest('hex');
  return JSON.stringify({ event_type: 'book', ...fields, hash, bids: BIDS, asks: ASKS });
}

function tradeMessage(price: string, atMs: number) {
  const fields = { market: MARKET, asset_id: TOKEN, price, size: '1', side: 'BUY', timestamp: String(atMs) };
  return JSON.stringify({ event_type: 'last_trade_price', ...fields });
}

/** A session with a verified snapshot. */
function verifiedSession() {
  const session = createPolymarketSession();
  session.subscribe([{ marketId: MARKET, outcomeIds: [TOKEN] }], START_MS);
  const announces = (frame: string, nowMs: number) =>
    session.take(frame, nowMs).updates.some(({ kind }) => kind === 'book');
  expect(announces(bookMessage({}), START_MS)).toBe(true);
  return { session, announces };
}

describe('a session of Polymarket', () => {
  it('announces a book when the trade that its hash covers arrives after it', () => {
    const { session, announces } = verifiedSession();
    const atMs = START_MS + 10;
    expect(announces(bookMessage({ lastTrade: '0.440', atMs }), atMs)).toBe(false);
    expect(session.book(TOKEN)).toBeUndefined();
    expect(announces(tradeMessage('0.43', atMs), atMs)).toBe(false);
    expect(announces(tradeMessage('0.44', atMs), atMs)).toBe(true);
    expect(session.book(TOKEN)?.bids[0]).toEqual({ price: '0.41', size: '5.5' });
    expect(session.check(atMs + LASTING_MS)).toEqual([]);
  });

  it('requests a snapshot and verifies it when the hidden values of the hash changed', () => {
    const { session, announces } = verifiedSession();
    const atMs = START_MS + 10;
    expect(announces(bookMessage({ minOrderSize: '15', atMs }), atMs)).toBe(false);
    const lostMs = atMs + LASTING_MS;
    expect(session.check(lostMs)).toEqual([{ of: 'books', reason: 'hash_mismatch', marketIds: [MARKET] }]);
    expect(session.refresh([MARKET], lostMs)).not.toEqual([]);
    expect(announces(bookMessage({ minOrderSize: '15', atMs: lostMs }), lostMs)).toBe(true);
    expect(announces(bookMessage({ minOrderSize: '15', atMs: lostMs + 10 }), lostMs + 10)).toBe(true);
  });
});

describe('FeedLevels', () => {
  const price = fc.integer({ min: 1, max: 20 }).map((ticks) => (ticks / 20).toFixed(2));
  const level = fc.record({ price, size: fc.constantFrom('0', '0.0', '1', '2.50', '1000') });

  it('has the levels of a map in the order of the wire after any changes', () => {
    fc.assert(
      fc.property(fc.array(level), fc.boolean(), (changes, isFalling) => {
        const levels = new FeedLevels(isFalling);
        const known = new Map<string, { price: string; size: string }>();
        for (const change of changes) {
          levels.put(change);
          if (Number(change.size) === 0) known.delete(change.price);
          else known.set(change.price, change);
          const rising = [...known.values()].sort((a, b) => compareDecimals(decimal(a.price), decimal(b.price)));
          const prices = rising.map((each) => decimal(each.price));
          expect([levels.lowest, levels.highest]).toEqual([prices[0], prices.at(-1)]);
          expect(JSON.parse(levels.toText())).toEqual(isFalling ? rising.toReversed() : rising);
          expect(levels.toRecords().map((each) => each.price)).toEqual(isFalling ? prices : prices.toReversed());
        }
      }),
    );
  });

  it('ignores a level without a readable price', () => {
    const levels = new FeedLevels(false);
    levels.put({ price: 'x', size: '1' });
    expect(levels.toText()).toBe('[]');
  });
});
