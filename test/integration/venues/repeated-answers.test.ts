import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { asError } from '../../../src/domain/values/errors.ts';
import type { VenueHttpSettings } from '../../../src/venues/http/http.ts';
import { createKalshiAdapter } from '../../../src/venues/kalshi/adapter.ts';
import { createManifoldAdapter } from '../../../src/venues/manifold/adapter.ts';
import type { VenueObserver } from '../../../src/venues/observer.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import type { CallContext, VenueAdapter } from '../../../src/venues/port.ts';
import { ScriptedServer } from './scripted-server.ts';

/*
 * An answer with the bytes of the last one is not parsed. A reader that knows former answers and one that reads each answer get the same
 * answers in the same order: their records, rejections, counts and errors are equal, also when the clock moves back
 * or a cache gives an older answer.
 */

const NOW = 1_790_000_000_000;
const SECOND = 1_000;
const MINUTE = 60 * SECOND;

interface Step {
  /** Which of the generated answers the venue gives. */
  answer: number;
  /** Which of the requests the caller sends. */
  request: number;
  passedMs: number;
  /** The header of an answer that was in a cache. */
  age?: string | undefined;
}

interface Venue {
  open(url: string, http: VenueHttpSettings, observer: VenueObserver): VenueAdapter;
  /** Bodies by the end of the path. */
  answer: fc.Arbitrary<Readonly<Record<string, string>>>;
  ask(adapter: VenueAdapter, request: number, context: CallContext): Promise<unknown>;
}

const text = (value: unknown) => JSON.stringify(value) ?? '';
const quote = fc.constantFrom('0.4', '0.45', '0.5', '0.62', '0', '1', '1.5', 'x');

const clobTime = fc.oneof(
  fc.constantFrom(undefined, null, '', 'soon', '5'),
  // Some are ahead of the clock, by more and by less than the venue may be.
  fc.constantFrom(-MINUTE, 0, MINUTE, 4 * MINUTE, 6 * MINUTE, 20 * MINUTE).map((ms) => String(NOW + ms)),
);
const levels = fc.array(fc.record({ price: quote, size: fc.constantFrom('5', '0', '-1') }), { maxLength: 2 });
const clobBook = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      asset_id: fc.constantFrom('10', '20', '30', '99'),
      timestamp: clobTime,
      bids: levels,
      asks: levels,
    }),
  },
  { weight: 1, arbitrary: fc.constantFrom(null, 5, {}) },
);
const lastTrade = fc.record({
  token_id: fc.constantFrom('10', '11', '20', '21', '30'),
  price: quote,
  side: fc.constantFrom('BUY', ''),
});
const CLOB_REQUESTS = [
  { ids: ['10', '20', '30'], mirrors: new Map([['10', '11']]) },
  { ids: ['10', '20', '30'], mirrors: new Map() },
  { ids: ['20'], mirrors: new Map([['20', '21']]) },
];

const kalshiMarket = fc.record({
  ticker: fc.constantFrom('KXA-1', 'KXA-2', 'KXMVE-1', ''),
  status: fc.constantFrom('active', 'closed', 'determined', 'new'),
  result: fc.constantFrom('', 'yes', 'maybe'),
  created_time: fc.constantFrom('2026-01-01T00:00:00Z', 'never', undefined),
  yes_bid_dollars: quote,
  yes_ask_dollars: quote,
  last_price_dollars: quote,
});

const prob = fc.constantFrom(0.5, 0.25, 0, 1, 2, null, '0.5');
const MANIFOLD_REQUESTS = [
  ['aaaa:YES', 'aaaa:NO', 'bbbb:a1'],
  ['aaaa:NO', 'bbbb:a1', 'bbbb:a2'],
];

const VENUES: Record<string, Venue> = {
  Polymarket: {
    open: (url, http, observer) =>
      createPolymarketAdapter({ urls: { gamma: `${url}/gamma`, clob: url, data: `${url}/data` }, http, observer }),
    answer: fc.record({
      '/books': fc.array(clobBook, { maxLength: 4 }).map(text),
      '/last-trades-prices': fc.oneof(fc.array(lastTrade, { maxLength: 3 }), fc.constant({})).map(text),
    }),
    ask: (adapter, request, context) => {
      const { ids, mirrors } = CLOB_REQUESTS[request % CLOB_REQUESTS.length] ?? { ids: [], mirrors: new Map() };
      return adapter.fetchPrices(ids, context, mirrors);
    },
  },
  Kalshi: {
    open: (url, http, observer) => createKalshiAdapter({ url, http, observer }),
    answer: fc.record({
      '/markets': fc
        .record({ markets: fc.array(kalshiMarket, { maxLength: 4 }), cursor: fc.constantFrom('', 'next', null, 5) })
        .map(text),
    }),
    ask: async (adapter, request, context) => {
      const parts = adapter.sweepPrices?.parts(NOW, []) ?? [];
      return adapter.sweepPrices?.fetch(parts[request % 2], context);
    },
  },
  Manifold: {
    open: (url, http, observer) => createManifoldAdapter({ url, http, observer }),
    answer: fc.record({
      '/market-probs': fc
        .dictionary(
          fc.constantFrom('aaaa', 'bbbb', 'cccc', 'a:b'),
          fc.oneof(
            fc.record({ prob }),
            fc.record({ answerProbs: fc.dictionary(fc.constantFrom('a1', 'a2', 'x y'), prob) }),
          ),
        )
        .map(text),
    }),
    ask: (adapter, request, context) => adapter.fetchPrices(MANIFOLD_REQUESTS[request % 2] ?? [], context),
  },
};

const step: fc.Arbitrary<Step> = fc.record({
  answer: fc.nat({ max: 2 }),
  request: fc.nat({ max: 2 }),
  age: fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, fc.constantFrom('0', '219', 'old')),
  passedMs: fc.oneof(
    { weight: 6, arbitrary: fc.constant(5 * SECOND) },
    { weight: 3, arbitrary: fc.constantFrom(0, 7 * MINUTE, -7 * MINUTE) },
  ),
});

const server = new ScriptedServer();
let url: string;
beforeEach(async () => {
  // Requests take no time, so that times can be compared exactly.
  vi.useFakeTimers({ toFake: ['performance'] });
  url = await server.start();
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await server.close();
});

describe.each(Object.entries(VENUES))('answers of %s that come again', (_, { open, answer, ask }) => {
  function reader(http: VenueHttpSettings) {
    const events: unknown[] = [];
    const note = (kind: string) => (event: object) => events.push({ kind, ...event });
    const observer: VenueObserver = {
      onSkipped: note('skipped'),
      onReceived: note('received'),
      onUnknown: note('unknown'),
      onTruncated: note('truncated'),
      onMembers: note('members'),
    };
    const adapter = open(url, { requestsPerSecond: 10_000, burst: 1_000, breakerFailures: 10_000, ...http }, observer);
    return {
      adapter,
      async read(request: number, context: CallContext) {
        events.length = 0;
        const parsed = vi.mocked(JSON.parse).mock.calls.length;
        const result = await ask(adapter, request, context).catch((error: unknown) => asError(error).message);
        const parses = vi.mocked(JSON.parse).mock.calls.length - parsed;
        return { effects: { result, events: [...events] }, parses };
      },
    };
  }

  it('have the effects of answers that are read, for any sequence', async () => {
    vi.spyOn(JSON, 'parse');
    let saved = 0;
    const answers = fc.array(fc.oneof({ weight: 9, arbitrary: answer }, { weight: 1, arbitrary: fc.constant({}) }), {
      minLength: 3,
      maxLength: 3,
    });
    await fc.assert(
      fc.asyncProperty(answers, fc.array(step, { maxLength: 12 }), async (bodies, steps) => {
        const settings = { maxAttempts: 1 };
        const remembering = reader(settings);
        const forgetful = reader({ ...settings, maxKeptRows: 0 });
        let nowMs = NOW;
        for (const { answer: index, request, passedMs, age } of steps) {
          nowMs += passedMs;
          const context = { signal: new AbortController().signal, now: () => nowMs };
          server.answer = ({ path }, response) => {
            const body = (bodies[index] as Record<string, string> | undefined)?.[path];
            response.writeHead(body === undefined ? 404 : 200, age === undefined ? {} : { age }).end(body);
          };
          const full = await forgetful.read(request, context);
          const short = await remembering.read(request, context);
          expect(short.effects).toEqual(full.effects);
          saved += full.parses - short.parses;
        }
        await Promise.all([remembering.adapter.close(), forgetful.adapter.close()]);
      }),
      { numRuns: 150 },
    );
    // The answers that came again were really not parsed.
    expect(saved).toBeGreaterThan(0);
  });
});
