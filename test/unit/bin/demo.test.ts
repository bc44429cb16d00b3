import { describe, expect, it } from 'vitest';
import { EVENT_EXAMPLES } from '../../../api/contract/events/event.ts';
import { bannerText } from '../../../bin/demo/banner.ts';
import { createEventLines } from '../../../bin/demo/event-lines.ts';
import { findFirstPrice } from '../../../bin/demo/first-price.ts';
import { startBannerText } from '../../../bin/start/banner.ts';
import { coloursOf } from '../../../cli/output.ts';
import { loadFeeds } from '../../../src/config/config.ts';
import { CONDITIONS } from '../../../src/domain/alerts/conditions.ts';
import { type ApiJson, toJsonText } from '../../../src/domain/values/api-json.ts';
import type { EventType } from '../../../src/domain/webhooks/event.ts';
import { snippetsOf } from '../../support/markdown.ts';

const MARKET = { market_id: '0xa', title: 'A' };

/** A search whose looks are a second apart, at an API that behaves as `answers` says, one answer per look. */
function search(answers: readonly ('refuses' | 'is empty' | 'has no price' | 'has a price')[]) {
  const said: string[] = [];
  let look = 0;
  const found = findFirstPrice({
    api: {
      async markets() {
        if (answers[look] === 'refuses') throw new Error('fetch failed');
        return answers[look] === 'is empty' ? [] : [MARKET];
      },
      async prices(ids) {
        const priced = answers[look] === 'has a price' ? ids : [];
        return priced.map((id) => ({ market_id: id, outcomes: [{ outcome_id: '17', price: 0.5 }] }));
      },
    },
    signal: new AbortController().signal,
    say: (text) => said.push(text),
    nowMs: () => look * 1_000,
    pause: async () => {
      look += 1;
    },
  });
  return { found, said };
}

const alertSamples = [
  { condition: 'above', targetPrice: 0.6, currentPrice: 0.62, facts: 'above 0.6: 0.62' },
  { condition: 'below', targetPrice: 0.6, currentPrice: 0.58, facts: 'below 0.6: 0.58' },
  { condition: 'crosses_above', targetPrice: 0.6, currentPrice: 0.62, facts: 'crosses_above 0.6: 0.62' },
  { condition: 'crosses_below', targetPrice: 0.6, currentPrice: 0.58, facts: 'crosses_below 0.6: 0.58' },
  {
    condition: 'executable',
    side: 'buy',
    size: 500,
    targetPrice: 0.6,
    priceWithFee: 0.58,
    facts: 'buy 500 for 0.6: 0.58',
  },
  {
    condition: 'executable',
    side: 'sell',
    notional: 100,
    targetPrice: 0.6,
    priceWithFee: 0.62,
    facts: 'sell 100 of money for 0.6: 0.62',
  },
  { condition: 'net_difference', size: 500, targetPrice: 0.02, net: 0.025, facts: 'net 0.02 of 500: 0.025' },
  { condition: 'change', change: 0.1, unit: 'absolute', currentPrice: 0.475, facts: 'change 0.1: 0.475' },
  {
    condition: 'change',
    change: 10,
    unit: 'percent',
    fromPrice: 0.5,
    currentPrice: 0.62,
    facts: 'change 10 %: 0.5 to 0.62',
  },
  { condition: 'spread', targetPrice: 0.02, value: 0.01, currentPrice: 0.475, facts: 'spread 0.02: 0.01' },
  { condition: 'trade', notional: 500, value: 612.5, currentPrice: 0.475, facts: 'trade 500: 612.5 at 0.475' },
  { condition: 'volume', notional: 500, value: 612.5, currentPrice: 0.475, facts: 'volume 500: 612.5' },
  { condition: 'volume', times: 3, windows: 24, value: 612.5, currentPrice: 0.475, facts: 'volume 3 times: 612.5' },
  { condition: 'status', status: 'closed', previousStatus: 'open', facts: 'status open to closed' },
  { condition: 'new_market', status: 'open', facts: 'new_market open' },
  { condition: 'resolution', status: 'closed', resolutionState: 'disputed', facts: 'resolution disputed' },
];

/** The facts of the documented example of each type. */
const FACTS: Readonly<Record<EventType, string>> = {
  price_alert: 'above 0.6: 0.62',
  transaction: 'trade buy 25 at 0.62',
  balance_change: '+25 to 125',
  alert_expired: 'crosses_above 7132104567925221259…',
  webhook_failing: 'http_status wh_01987f5e-6a3b-7c11…',
  webhook_paused: 'gone wh_01987f5e-6a3b-7c11-8b5e-0…',
  market_status: 'closed to resolved (outcome)',
  new_market: '  open  ',
  trade: 'buy 2500 at 0.62',
  market_resolution: 'proposed to disputed',
  feed_gap: 'disconnected, 1 market, ended',
  market_rules: 'version 2',
  test: 'wh_01987f5e-6a3b-7c11-8b5e-0d2f6f…',
};

const times = <T>(count: number, answer: T) => Array.from({ length: count }, () => answer);

describe('the demo', () => {
  it('waits for minutes until a market has a price, and reports its progress', async () => {
    const { found, said } = search([
      ...times(300, 'refuses' as const),
      ...times(12, 'is empty' as const),
      'has no price',
      'has a price',
    ]);
    expect(await found).toEqual({ marketId: '0xa', outcomeId: '17' });
    expect(said.slice(0, 2)).toEqual([
      'demo: waiting for the API (0 s)',
      'demo: waiting for the API (10 s): fetch failed',
    ]);
    expect(said.slice(-3)).toEqual([
      'demo: waiting for the first markets of the exchange (300 s)',
      'demo: waiting for the first markets of the exchange (310 s)',
      'demo: waiting for the first price (312 s)',
    ]);
    expect(said).toHaveLength(33);
  });

  const facts = {
    apiUrl: 'http://127.0.0.1:8080',
    apiKey: 'ow_demo_1',
    opsPassword: 'p',
    receiverUrl: 'https://127.0.0.1:9443/me',
    dataDir: '.data/demo',
    archiveDir: '.data/demo/archive',
    signIn: {
      url: 'http://127.0.0.1:8080/console/sign-in/t',
      expiresAt: new Date('2026-01-02T03:04:05Z'),
      freshLink: 'npm run --silent keys -- link --account me',
    },
    marketId: '0xa b',
    outcomeId: '17',
    ...loadFeeds({}),
  };

  it('prints which venues have a feed, and why another one has none', () => {
    const environment = {
      VENUES: 'polymarket,kalshi,manifold,limitless,solana',
      FEEDS: 'polymarket,kalshi,limitless',
      LIMITLESS_API_URL: 'http://127.0.0.1:9/limitless',
    };
    const text = bannerText({ ...facts, ...loadFeeds(environment) });
    expect(text.split('\n').filter((line) => line.includes('feed'))).toEqual([
      '  feeds       polymarket',
      '  no feed     kalshi: KALSHI_API_KEY_ID and KALSHI_PRIVATE_KEY_FILE are not set; polls read it',
      '  no feed     manifold: FEEDS does not turn it on; polls read it',
      '  no feed     limitless: its API is not the public one, and its feed has no address; polls read it',
      '  no feed     solana: the venue has no feed; polls read it',
    ]);
  });

  it('prints the address of the receiver for webhooks of the user', () => {
    expect(bannerText(facts)).toContain('  receiver    https://127.0.0.1:9443/me ');
  });

  it('prints the folder of the archive unless the archive is off', () => {
    expect(bannerText(facts).split('\n')).toContain('  archive     .data/demo/archive');
    expect(bannerText({ ...facts, archiveDir: undefined })).not.toContain('  archive ');
  });

  it('prints one sign-in link, until when it works, and the command that prints another one', () => {
    const lines = bannerText(facts).split('\n');
    expect(lines.filter((line) => line.includes('/console/sign-in/'))).toEqual([`  ${facts.signIn.url}`]);
    const until = 'The link works once, until 03:04 UTC. Another link: npm run --silent keys -- link --account me';
    expect(lines[lines.indexOf(`  ${facts.signIn.url}`) + 1]).toBe(until);
    expect(bannerText({ ...facts, signIn: undefined })).not.toContain('sign');
  });

  it('prints the settings of the calls of docs/start.md, and fits a terminal of 24 lines', () => {
    const text = bannerText(facts);
    const [documented] = snippetsOf('docs/start.md').filter((snippet) => snippet.text.includes('curl'));
    const names = documented?.text.split('\n').flatMap((line) => /^([A-Z]+)=/.exec(line)?.[1] ?? []);
    expect(names).toEqual(['API', 'KEY', 'MARKET', 'OUTCOME']);
    for (const name of names ?? []) expect(text).toMatch(new RegExp(`^  ${name}=\\S+$`, 'm'));
    expect(text).toContain('  MARKET=0xa%20b\n');
    expect(bannerText({ ...facts, ...loadFeeds({ VENUES: 'polymarket' }) }).split('\n').length).toBeLessThanOrEqual(24);
  });
});

describe('the lines of events', () => {
  const event = (over: object) =>
    JSON.stringify({
      event: {
        at: '2026-01-02T03:04:05.678Z',
        type: 'price_alert',
        id: 'evt_1',
        data: {
          venue: 'kalshi',
          marketId: 'M-1',
          tokenSymbol: 'Yes',
          condition: 'above',
          targetPrice: 0.6,
          currentPrice: 0.62,
        },
        attempt: '1',
        bodySignature: 'ok',
        standardSignature: 'ok',
        isDuplicate: false,
        ...over,
      },
    });
  const plain = coloursOf(false, {});

  function lines(titleOf: (venue: string, id: string) => Promise<string>, colours = plain) {
    const said: string[] = [];
    return { said, lines: createEventLines({ titleOf, say: (text) => said.push(text), colours }) };
  }

  it('have time, kind, title, price and both verdicts', async () => {
    const { said, lines: printer } = lines(async () => 'Will it \x1b[2Jsnow?');
    expect(printer.take(event({}))).toBe(true);
    const trade = { venue: 'kalshi', marketId: 'M-1', side: 'buy', size: 25, price: 0.5 };
    printer.take(
      event({ type: 'transaction', data: trade, standardSignature: 'bad', attempt: '2', isDuplicate: true }),
    );
    await printer.printed();
    expect(said.map((line) => line.replaceAll(/ {2,}/g, '  '))).toEqual([
      '03:04:05.678  price_alert  Will it \ufffd[2Jsnow? · Yes  above 0.6: 0.62  X-Webhook-Signature ok  webhook-signature ok',
      '03:04:05.678  transaction  Will it \ufffd[2Jsnow?  buy 25 at 0.5  X-Webhook-Signature ok  webhook-signature BAD  attempt 2  DUPLICATE',
    ]);
  });

  it.each(alertSamples)('state the condition and the observation of $condition', async ({ facts, ...data }) => {
    const { said, lines: printer } = lines(async () => 'A');
    printer.take(event({ data: { venue: 'kalshi', marketId: 'M-1', ...data } }));
    await printer.printed();
    expect(said[0]).toContain(`  ${facts}  `);
  });

  it('state every condition in the samples', () => {
    expect(new Set(alertSamples.map(({ condition }) => condition))).toEqual(new Set(CONDITIONS));
  });

  it.each(Object.values(EVENT_EXAMPLES).map((example) => [example.type, example] as const))(
    'state the facts of %s, also without its optional fields, and no absent field',
    async (_type, example) => {
      const sent = JSON.parse(toJsonText(example as unknown as ApiJson, 'number')) as { data: Record<string, unknown> };
      const { said, lines: printer } = lines(async () => 'A');
      for (const left of [undefined, ...Object.keys(sent.data)]) {
        const data = Object.fromEntries(Object.entries(sent.data).filter(([name]) => name !== left));
        printer.take(event({ ...sent, data }));
      }
      printer.take(event({ ...sent, data: {} }));
      await printer.printed();
      expect(said).toHaveLength(Object.keys(sent.data).length + 2);
      expect(said.join('\n')).not.toMatch(/undefined|null|NaN|\[object/);
      expect(said[0]).toContain(FACTS[example.type]);
    },
  );

  it('keep the order of arrival while titles are read, and read each title once', async () => {
    const asked: string[] = [];
    const { said, lines: printer } = lines(async (_venue, id) => {
      asked.push(id);
      if (id === 'slow') await new Promise((resolve) => setImmediate(resolve));
      return id;
    });
    for (const marketId of ['slow', 'fast', 'slow']) printer.take(event({ data: { venue: 'kalshi', marketId } }));
    await printer.printed();
    expect(said.map((line) => /slow|fast/.exec(line)?.[0])).toEqual(['slow', 'fast', 'slow']);
    expect(asked).toEqual(['slow', 'fast']);
  });

  it('have the id of the market while the API does not answer', async () => {
    const { said, lines: printer } = lines(async () => Promise.reject(new Error('fetch failed')));
    printer.take(event({}));
    await printer.printed();
    expect(said[0]).toContain('M-1 · Yes');
  });

  it('say that a signature was not checked when the receiver has no secret', async () => {
    const { said, lines: printer } = lines(async () => 'A');
    printer.take(event({ bodySignature: 'unchecked', standardSignature: 'unchecked' }));
    await printer.printed();
    expect(said[0]).toContain('X-Webhook-Signature not checked  webhook-signature not checked');
  });

  it('leave other lines of the receiver alone', () => {
    expect(lines(async () => '').lines.take('receiver: listening on https://127.0.0.1:1')).toBe(false);
  });

  it('are coloured on a terminal only', async () => {
    const { said, lines: printer } = lines(async () => 'A', coloursOf(true, {}));
    printer.take(event({ bodySignature: 'missing' }));
    await printer.printed();
    expect(said[0]).toContain('\x1b[31mX-Webhook-Signature MISSING\x1b[0m  \x1b[32mwebhook-signature ok\x1b[0m');
    expect(coloursOf(true, { NO_COLOR: '1' }).red('x')).toBe('x');
  });
});

describe('the banner of oddswire start', () => {
  const facts = {
    apiUrl: 'http://127.0.0.1:8080',
    environment: {},
    dataDir: '.data',
    isOpsOn: false,
    ...loadFeeds({ VENUES: 'kalshi' }),
    createKey: 'oddswire keys create',
    addOperator: 'oddswire operators add NAME',
  };

  it('names the addresses, the call that creates a key, and the parts that are off with the reason', () => {
    const text = startBannerText(facts);
    for (const line of [
      'oddswire is ready: API http://127.0.0.1:8080, documentation http://127.0.0.1:8080/docs',
      '  database    embedded, in .data',
      '  queues      in Postgres, because REDIS_URL is not set',
      'Create an API key: oddswire keys create',
      '  operator pages: no operator exists; set OPS_PASSWORD, or run oddswire operators add NAME',
      '  calls from pages of browsers: CORS_ORIGINS names no origin',
      '  console     http://127.0.0.1:8080/, with an API key',
      '  feed of kalshi: KALSHI_API_KEY_ID and KALSHI_PRIVATE_KEY_FILE are not set; polls read it',
      '  tokens and wallets of solana: VENUES does not name solana',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
  });

  it('names nothing as off when every part is on', () => {
    const variables = { CORS_ORIGINS: '*', SOLANA_RPC_URL: 'http://x', KALSHI_API_KEY_ID: 'k' };
    const environment = { ...variables, DATABASE_URL: 'postgres://x', REDIS_URL: 'r', VENUES: 'kalshi,solana' };
    const text = startBannerText({ ...facts, environment, isOpsOn: true, ...loadFeeds(environment) });
    expect(text).not.toContain('Off:');
    expect(text).toContain('  feeds       kalshi; their states are in http://127.0.0.1:8080/v1/venues\n');
    expect(text).toContain('  operators   http://127.0.0.1:8080/ops\n');
    expect(text).toContain('  database    of DATABASE_URL\n');
    const off = { CONSOLE: 'off', FEEDS: 'off', VENUES: 'kalshi' };
    expect(startBannerText({ ...facts, environment: off, ...loadFeeds(off) })).toMatch(
      /Off:\n.*\n {2}console: CONSOLE is off\n.*\n {2}feed of kalshi: FEEDS does not turn it on; polls read it\n/,
    );
    // Both variables may hold a password.
    expect(text).not.toContain('postgres://x');
  });
});
