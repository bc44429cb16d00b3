import { describe, expect, it } from 'vitest';
import { changeData } from '../../../../src/domain/live/change.ts';
import { MARKET_STATUSES } from '../../../../src/domain/markets/market.ts';
import { toJsonText } from '../../../../src/domain/values/api-json.ts';
import { keyOf } from '../../../../src/domain/values/text.ts';
import {
  type Field,
  type Fields,
  presentBody,
  probabilityOf,
  rowPresenter,
} from '../../../../src/domain/wire/fields.ts';
import * as OBJECTS from '../../../../src/domain/wire/market-data.ts';

const EVERY_KIND = {
  market_id: { kind: 'id' },
  title: { kind: 'text', optional: true },
  tags: { kind: 'texts' },
  trades: { kind: 'count' },
  closed: { kind: 'flag' },
  open_at: { kind: 'time', optional: true },
  timestamp: { kind: 'bucket' },
  volume_24h: { kind: 'decimal', optional: true },
  probability: { kind: 'probability', optional: true },
  side: { kind: 'word', words: ['buy', 'sell'] },
  outcomes: { kind: 'list', of: { outcome_id: { kind: 'id' }, best_bid: { kind: 'decimal', optional: true } } },
} as const satisfies Fields;

const ROW = {
  marketId: 'm-1',
  title: null,
  tags: ['a'],
  trades: 0,
  closed: false,
  openAt: new Date(1_767_323_045_987),
  timestamp: 60,
  volume24h: '12.50',
  probability: '0.250',
  side: 'buy',
  outcomes: [
    { outcomeId: 'o-1', bestBid: '0.40' },
    { outcomeId: 'o-2', bestBid: null },
  ],
} as const;

const SENT = `{"market_id":"m-1","tags":["a"],"trades":0,"closed":false,"open_at":1767323045,"timestamp":60,"volume_24h":"12.5",\
"probability":0.25,"side":"buy","outcomes":[{"outcome_id":"o-1","best_bid":"0.4"},{"outcome_id":"o-2"}]}`;

describe('rowPresenter', () => {
  it('sends each kind in the order of the fields, and omits unknown values', () => {
    const row = { ...ROW, tags: [...ROW.tags], outcomes: [...ROW.outcomes] };
    expect(toJsonText(rowPresenter(EVERY_KIND)(row), 'string')).toBe(SENT);
  });
});

describe('presentBody', () => {
  it('sends a stored body in its order, with values that have no field', () => {
    const body = { volume: '1.0', later: { price: '0.50' }, none: null, open_at: 60, volume_24h: '0.0', title: null };
    const text = '{"volume":"1.0","later":{"price":"0.50"},"none":null,"open_at":60,"volume_24h":0}';
    expect(toJsonText(presentBody(EVERY_KIND, body), 'number')).toBe(text);
  });

  it('sends the items of a list with their own fields', () => {
    const body = { outcomes: [{ best_bid: '0.40', volume_24h: '1.0' }] };
    expect(toJsonText(presentBody(EVERY_KIND, body), 'number')).toBe(
      '{"outcomes":[{"best_bid":0.4,"volume_24h":"1.0"}]}',
    );
  });
});

describe('probabilityOf', () => {
  it.each(['0', '0.000000000000000001', '0.5', '1'])('is the price %s', (price) => {
    expect(probabilityOf(price)).toMatchObject({ digits: price, kind: 'number' });
  });

  it.each(['-0.000000000000000001', '1.000000000000000001', '2'])('is unknown for the price %s', (price) => {
    expect(probabilityOf(price)).toBeUndefined();
  });
});

describe('keyOf', () => {
  it.each([
    ['volume_24h', 'volume24h'],
    ['best_bid', 'bestBid'],
    ['winning_outcome_id', 'winningOutcomeId'],
    ['price', 'price'],
  ])('is the key of the column %s, each time', (column, key) => {
    expect([keyOf(column), keyOf(column)]).toEqual([key, key]);
  });
});

const KINDS = ['id', 'text', 'texts', 'count', 'flag', 'time', 'bucket', 'decimal', 'probability', 'word', 'list'];
const fieldsOf = (fields: Fields): [string, Field][] => Object.entries(fields);

describe('the objects of market data', () => {
  it.each(Object.entries<Fields>(OBJECTS))('%s has known kinds, and sentences as descriptions', (_, fields) => {
    for (const [name, { kind, about = 'None.' }] of fieldsOf(fields)) {
      expect(KINDS, name).toContain(kind);
      expect(about, name).toMatch(/^[A-Z].+\.$/);
    }
  });

  it('name their optional fields', () => {
    const optional = Object.entries<Fields>(OBJECTS).map(([name, fields]) => {
      const names = fieldsOf(fields).filter(([, field]) => field.optional);
      return [name, names.map(([each]) => each).join(' ')];
    });
    const ofMarket =
      'event_id event_title sibling_label category created_at open_at close_at resolved_at winning_outcome_id';
    const figures = 'url volume volume_24h liquidity';
    expect(Object.fromEntries(optional)).toEqual({
      MARKET: `${ofMarket} resolution_criteria ${figures}`,
      MARKET_CHANGE: `${ofMarket} ${figures}`,
      MARKET_EVENT: 'title category created_at open_at close_at url volume volume_24h',
      OUTCOME_PRICE: 'price probability best_bid best_ask',
      PAYOUT: '',
      RESOLUTION: 'round at reason proposer disputer transaction bond observed_value strike raw_state',
      PRICE: 'price probability best_bid best_ask',
      TRADE: 'side received_at',
      LEVEL: 'count',
      BOOK: 'best_bid best_ask spread',
      CANDLE: '',
      EXECUTABLE: 'size notional fee_reason missing_size missing_notional reason',
    });
  });

  it('have the words of their kind', () => {
    const { MARKET, MARKET_EVENT, TRADE } = OBJECTS;
    expect([MARKET.status.words, MARKET_EVENT.status.words]).toEqual([MARKET_STATUSES, MARKET_STATUSES]);
    expect(TRADE.side.words).toEqual(['buy', 'sell']);
  });

  it('have the kinds that change values where values change', () => {
    const changing = (fields: Fields) =>
      fieldsOf(fields).flatMap(([name, { kind }]) =>
        ['time', 'decimal', 'probability', 'list'].includes(kind) ? [`${name} ${kind}`] : [],
      );
    const { BOOK, CANDLE, LEVEL, MARKET, MARKET_CHANGE, PRICE, TRADE } = OBJECTS;
    const times = ['outcomes list', 'created_at time', 'open_at time', 'close_at time', 'resolved_at time'];
    const rest = ['volume decimal', 'volume_24h decimal', 'liquidity decimal', 'updated_at time'];
    expect([changing(MARKET), changing(MARKET_CHANGE)]).toEqual([
      [...times, ...rest],
      [...times, ...rest],
    ]);
    const quote = ['price decimal', 'probability probability', 'best_bid decimal', 'best_ask decimal'];
    expect(changing(PRICE)).toEqual(['as_of time', ...quote]);
    expect(changing(TRADE)).toEqual(['timestamp time', 'price decimal', 'size decimal', 'received_at time']);
    expect(changing(LEVEL)).toEqual(['price decimal', 'size decimal']);
    const sides = ['as_of time', 'bids list', 'asks list'];
    expect(changing(BOOK)).toEqual([...sides, 'best_bid decimal', 'best_ask decimal', 'spread decimal']);
    const figures = ['open', 'high', 'low', 'close', 'volume', 'notional'];
    expect(changing(CANDLE)).toEqual(figures.map((name) => `${name} decimal`));
  });
});

describe('changeData', () => {
  it.each([
    ['price', { price: '0.50' }, '{"price":0.5}'],
    ['trade', { size: '2.0' }, '{"size":2}'],
    [
      'book',
      { bids: [{ price: '0.40', size: '5' }], spread: '0.10' },
      '{"bids":[{"price":0.4,"size":5}],"spread":0.1}',
    ],
    ['candle', { interval: '1m', notional: '3.0' }, '{"interval":"1m","notional":3}'],
    ['market', { title: '1.0', liquidity: '7.0' }, '{"title":"1.0","liquidity":7}'],
    ['history', { price: '0.50' }, '{"price":"0.50"}'],
  ] as const)('sends the decimals of a %s as numbers', (kind, body, text) => {
    expect(toJsonText(changeData({ kind, body }), 'number')).toBe(text);
  });
});
