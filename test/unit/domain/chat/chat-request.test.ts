import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Condition } from '../../../../src/domain/alerts/conditions.ts';
import { askedWaitSeconds, chatMessage, chatRequest } from '../../../../src/domain/chat/chat-request.ts';
import { CHAT_FORMATS, chatUrlProblem, redactedUrl } from '../../../../src/domain/chat/chat-url.ts';
import { EVENTS } from '../../../../src/domain/events/events.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import type { ChatFacts } from '../../../../src/domain/webhooks/chat-values.ts';
import { EVENT_TYPES, type EventType } from '../../../../src/domain/webhooks/event.ts';
import { ALERT_BODIES, alertBody } from '../../../factories/alert-events.ts';
import { anyCharacters } from '../../../factories/texts.ts';
import { PATHS, SCHEMAS } from '../../../support/chat-services.ts';

const FACTS: ChatFacts = { title: 'Will it rain?', outcome: 'Yes', url: 'https://venue.example.com/markets/rain' };
const bodyOf = (type: (typeof EVENT_TYPES)[number]) =>
  EVENTS[type].sample({ eventId: 'evt_1', occurredAt: new Date('2026-01-02T03:04:05.678Z') }, 'wh_1');
const urlOf = (format: keyof typeof PATHS) => `https://chat.example.com${PATHS[format]}`;
const sent = (format: keyof typeof PATHS, body: string, facts = FACTS, skipped = 0) =>
  JSON.parse(chatRequest(format, urlOf(format), chatMessage(body, facts, skipped)).body) as unknown;

describe('chatMessage', () => {
  const linesOf = (body: string, facts: ChatFacts = {}, skipped = 0) => {
    const { title, fields } = chatMessage(body, facts, skipped);
    return [title, ...fields.map(({ name, value }) => `${name}: ${value}`)];
  };
  const MARKET = ['Market: Will it rain?', 'Outcome: Yes', 'Alert: My alert'];

  it.each<[Condition, Parameters<typeof alertBody>[1], string, string[]]>([
    ['above', {}, 'Price alert: Yes above 0.6', ['Price: 0.62', 'Target: 0.6']],
    ['below', {}, 'Price alert: Yes below 0.3', ['Price: 0.25', 'Target: 0.3']],
    [
      'crosses_above',
      {},
      'Price alert: Yes crossed above 0.5',
      ['Price: 0.6', 'Target: 0.5', 'Move: +0.3 (+100 %) from 0.3'],
    ],
    [
      'crosses_below',
      {},
      'Price alert: Yes crossed below 0.5',
      ['Price: 0.4', 'Target: 0.5', 'Move: -0.4 (-50 %) from 0.8'],
    ],
    [
      'change',
      {},
      'Price alert: Yes rose by at least 10 % within 1 h',
      ['Price: 0.6', 'Move: +0.1 (+20 %) from 0.5', 'Threshold: at least 10 % up within 1 h'],
    ],
    [
      'change',
      { threshold: decimal('0.05'), unit: 'absolute', direction: undefined, windowSeconds: 90 },
      'Price alert: Yes moved by at least 0.05 within 90 s',
      ['Price: 0.6', 'Move: +0.1 (+20 %) from 0.5', 'Threshold: at least 0.05 within 90 s'],
    ],
    [
      'spread',
      {},
      'Spread alert: Yes 0.015 (at most 0.02)',
      ['Price: 0.62', 'Spread: 0.015', 'Threshold: at most 0.02'],
    ],
    [
      'trade',
      {},
      'Trade alert: Yes 1550 (at least 1000)',
      ['Price: 0.62', 'Value of the trade: 1550', 'Threshold: at least 1000'],
    ],
    [
      'volume',
      {},
      'Volume alert: Yes 5230.5 within 15 min (at least 5000)',
      ['Price: 0.62', 'Volume: 5230.5 within 15 min', 'Threshold: at least 5000'],
    ],
    [
      'volume',
      { threshold: decimal('3'), windows: 24, windowSeconds: 86_400 },
      'Volume alert: Yes 5230.5 within 1 d (at least 3 × the mean of 24 windows)',
      ['Price: 0.62', 'Volume: 5230.5 within 1 d', 'Threshold: at least 3 × the mean of 24 windows'],
    ],
  ])('of a %s alert has its value, move and threshold (%j)', (condition, fields, title, lines) => {
    expect(linesOf(alertBody(condition, fields), FACTS)).toEqual([title, ...MARKET, ...lines]);
    expect(chatMessage(alertBody(condition, fields), FACTS)).toMatchObject({ link: FACTS.url, eventId: 'evt_1' });
  });

  it('of a status alert has the status before, and the winner', () => {
    expect(linesOf(alertBody('status'), { title: 'Will it rain?', winner: 'Yes' })).toEqual([
      'Market alert: resolved · Will it rain?',
      'Market: Will it rain?',
      'Alert: My alert',
      'Status: resolved',
      'Before: closed',
      'Winner: Yes',
    ]);
  });

  it('of a new_market alert has the market, its venue and its status', () => {
    expect(linesOf(alertBody('new_market'))).toEqual([
      'New market: Will it rain?',
      'Market: Will it rain?',
      'Alert: My alert',
      'Venue: polymarket',
      'Status: open',
    ]);
  });

  it('of a token without a market names the token', () => {
    expect(linesOf(new Map(ALERT_BODIES).get('a token without a market') ?? '')).toEqual([
      'Price alert: SOL above 200',
      'Token: SOL',
      'Alert: My alert',
      'Price: 201.5',
      'Target: 200',
    ]);
  });

  it('has the number of skipped events', () => {
    expect(linesOf(alertBody('above'), FACTS, 2)).toContain('Skipped before: 2 events');
  });

  it('keeps the value in the title when the label is long', () => {
    const { title } = chatMessage(alertBody('trade'), { outcome: 'x'.repeat(400) });
    expect(title).toMatch(/^Trade alert: x{59}… 1550 \(at least 1000\)$/);
  });

  it.each<[EventType, ChatFacts, string[]]>([
    [
      'market_status',
      { winner: 'Yes' },
      ['Sample market: resolved', 'Market: Sample market', 'Status: resolved', 'Before: closed', 'Winner: Yes'],
    ],
    [
      'new_market',
      {},
      ['New market: Sample market', 'Market: Sample market', 'Venue: sample', 'Category: Sample', 'Status: open'],
    ],
    [
      'trade',
      {},
      [
        'Trade: buy Yes at 0.62',
        'Market: Sample market',
        'Outcome: Yes',
        'Size: 2500',
        'Price: 0.62',
        'Value: 1550 USD',
      ],
    ],
    ['market_rules', {}, ['Rules changed: Sample market', 'Market: Sample market', 'Venue: sample', 'Version: 2']],
    [
      'feed_gap',
      {},
      [
        'Feed of sample: gap ended',
        'Cause: disconnected',
        'Affected: books of 1 market',
        'From: 2026-01-01T00:00:00.000Z',
        'To: 2026-01-02T03:04:05.678Z',
      ],
    ],
    [
      'webhook_failing',
      {},
      [
        'A webhook fails',
        'Webhook: wh_sample',
        'Failing since: 2026-01-01T00:00:00.000Z',
        'Last error: http status 502',
      ],
    ],
    [
      'webhook_paused',
      {},
      [
        'A webhook is paused',
        'Reason: failing',
        'Webhook: wh_sample',
        'Failing since: 2026-01-01T00:00:00.000Z',
        'Last error: http status 502',
      ],
    ],
    [
      'alert_expired',
      FACTS,
      [
        'Alert expired: Yes above',
        'Market: Will it rain?',
        'Outcome: Yes',
        'Alert: alert_sample',
        'Condition: above',
        'Expired: 2026-01-02T03:04:05.678Z',
      ],
    ],
    [
      'transaction',
      {},
      [
        'Wallet sample-wallet: buy',
        'Venue: sample',
        'Status: confirmed',
        'Size: 25',
        'Price: 0.62',
        'Value: 15.5',
        'Transfers: +25 Yes',
      ],
    ],
    [
      'balance_change',
      {},
      ['Wallet sample-wallet: balance changed', 'Outcome: Yes', 'Venue: sample', 'Balance: 125', 'Move: +25 from 100'],
    ],
    ['test', {}, ['Test message of oddswire', 'Result: This webhook works.']],
  ])('of a %s event has its facts', (type, facts, lines) => expect(linesOf(bodyOf(type), facts)).toEqual(lines));

  it('of a voided market states the result', () => {
    const event = JSON.parse(bodyOf('market_status')) as { data: Record<string, unknown> };
    const { winningOutcomeId: _winner, ...data } = { ...event.data, resolution: 'void' } as Record<string, unknown>;
    expect(linesOf(JSON.stringify({ ...event, data }))).toContain('Result: void');
  });

  it('of a wallet of many transfers counts those that it does not list', () => {
    const event = JSON.parse(bodyOf('transaction')) as { data: { transfers: unknown[] } };
    event.data.transfers = Array.from({ length: 6 }, (_, at) => ({
      tokenMint: 't',
      tokenSymbol: `T${at}`,
      change: -at,
    }));
    expect(linesOf(JSON.stringify(event))).toContain('Transfers: 0 T0, -1 T1, -2 T2, -3 T3, 2 more');
  });

  it('of a new market links the page that the event has', () => {
    const event = JSON.parse(bodyOf('new_market')) as { data: Record<string, unknown> };
    event.data['url'] = FACTS.url;
    expect(chatMessage(JSON.stringify(event), {}).link).toBe(FACTS.url);
  });

  it('of an unknown type has its plain fields', () => {
    const body =
      '{"id":"evt_1","type":"new_kind","timestamp":"2026-01-02T03:04:05.678Z","data":{"a":1,"b":"x","c":null,"d":{}}}';
    expect(chatMessage(body, {})).toMatchObject({
      title: 'New kind',
      fields: [
        { name: 'a', value: '1' },
        { name: 'b', value: 'x' },
      ],
    });
  });

  it('has no link that is no web address', () => {
    expect(chatMessage(bodyOf('test'), { url: 'javascript:alert(1)' }).link).toBeUndefined();
  });
});

describe.each(CHAT_FORMATS)('a request for %s', (format) => {
  it.each(EVENT_TYPES)('meets the schema of the service with a %s event', (type) => {
    const { success, error } = SCHEMAS[format].safeParse(sent(format, bodyOf(type)));
    expect([success, error?.issues]).toEqual([true, undefined]);
  });

  it.each(ALERT_BODIES)('meets the schema of the service with an alert: %s', (_name, body) => {
    for (const facts of [FACTS, {}]) {
      const { success, error } = SCHEMAS[format].safeParse(sent(format, body, facts));
      expect([success, error?.issues]).toEqual([true, undefined]);
    }
  });

  it('meets the schema of the service when the title of a market has a mention', () => {
    const facts = { ...FACTS, title: 'Will @everyone, @here & @durov <!channel> agree?' };
    const { success, error } = SCHEMAS[format].safeParse(sent(format, bodyOf('price_alert'), facts));
    expect([success, error?.issues]).toEqual([true, undefined]);
  });

  it.each(['&', 'é'])('meets the schema of the service when escapes of %s make a link long', (character) => {
    const facts = { ...FACTS, url: `https://venue.example.com/?${character.repeat(1_900)}` };
    const { success, error } = SCHEMAS[format].safeParse(sent(format, bodyOf('price_alert'), facts));
    expect([success, error?.issues]).toEqual([true, undefined]);
  });

  it('meets the schema of the service with any text', () => {
    const hostile = fc.oneof(
      anyCharacters(400),
      fc.string({
        unit: fc.constantFrom('<', '&', '>', '@', '*', '_', '|', '\\', '😀', '\n', '"', 'a'),
        maxLength: 3_000,
      }),
    );
    fc.assert(
      fc.property(
        hostile,
        hostile,
        hostile,
        fc.webUrl({ withQueryParameters: true, withFragments: true }),
        (title, outcome, symbol, url) => {
          const event = JSON.parse(bodyOf('price_alert')) as { data: Record<string, unknown> };
          event.data['tokenSymbol'] = symbol;
          const { success, error } = SCHEMAS[format].safeParse(
            sent(format, JSON.stringify(event), { title, outcome, url }),
          );
          expect([success, error?.issues]).toEqual([true, undefined]);
        },
      ),
    );
  });
});

describe('the URL of a chat webhook', () => {
  it('keeps the chat of Telegram out of the address, with its thread', () => {
    const url = `${urlOf('telegram')}&message_thread_id=5`;
    const request = chatRequest('telegram', url, chatMessage(bodyOf('test'), {}));
    expect(request.url).toBe('https://chat.example.com/bot123456:telegram-token/sendMessage');
    expect(JSON.parse(request.body)).toMatchObject({ chat_id: '-1001234', message_thread_id: 5 });
  });

  it('is shown as its host only', () => {
    for (const format of CHAT_FORMATS) expect(redactedUrl(urlOf(format))).toBe('https://chat.example.com/***');
  });

  it.each([
    ['discord', 'https://discord.com/***', 'must be the whole URL of the chat webhook'],
    ['telegram', 'https://api.telegram.org/bot1:x/getMe?chat_id=1', 'must end with /bot<token>/sendMessage'],
    ['telegram', 'https://api.telegram.org/bot1:x/sendMessage', 'must have the parameter chat_id'],
    ['slack', 'https://hooks.slack.com/services/a/b/c', null],
  ] as const)('of %s, %s, is judged: %s', (format, url, problem) => expect(chatUrlProblem(format, url)).toBe(problem));
});

describe('askedWaitSeconds', () => {
  it.each([
    ['{"message":"You are being rate limited.","retry_after":0.75,"global":false}', 0.75],
    ['{"ok":false,"error_code":429,"parameters":{"retry_after":31}}', 31],
    ['rate_limited', undefined],
    ['{"retry_after":"5"}', undefined],
    ['{"retry_after":-1}', undefined],
    ['null', undefined],
  ])('of %s is %s', (text, seconds) => expect(askedWaitSeconds(Buffer.from(text))).toBe(seconds));
});
