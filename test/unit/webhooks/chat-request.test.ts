import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { testEventBody } from '../../../api/routes/test-event.ts';
import { CHAT_FORMATS, type ChatFacts, chatMessage } from '../../../src/domain/webhooks/chat-message.ts';
import { chatUrlProblem, redactedUrl } from '../../../src/domain/webhooks/chat-url.ts';
import { EVENT_TYPES } from '../../../src/domain/webhooks/event.ts';
import { askedWaitSeconds, chatRequest } from '../../../src/webhooks/chat-request.ts';
import { PATHS, SCHEMAS } from '../../support/chat-services.ts';

const FACTS: ChatFacts = { title: 'Will it rain?', outcome: 'Yes', url: 'https://venue.example.com/markets/rain' };
const bodyOf = (type: (typeof EVENT_TYPES)[number]) =>
  testEventBody({ eventId: 'evt_1', type, occurredAt: new Date('2026-01-02T03:04:05.678Z'), webhookId: 'wh_1' });
const urlOf = (format: keyof typeof PATHS) => `https://chat.example.com${PATHS[format]}`;
const sent = (format: keyof typeof PATHS, body: string, facts = FACTS, skipped = 0) =>
  JSON.parse(chatRequest(format, urlOf(format), chatMessage(body, facts, skipped)).body) as unknown;

describe('chatMessage', () => {
  it('of an alert has the market, the outcome, the price, the move and the link', () => {
    const message = chatMessage(bodyOf('price_alert'), FACTS, 2);
    expect(message).toMatchObject({ title: 'Price alert: Yes above 0.6', link: FACTS.url, eventId: 'evt_1' });
    expect(Object.fromEntries(message.fields.map(({ name, value }) => [name, value]))).toEqual({
      Market: 'Will it rain?',
      Outcome: 'Yes',
      Price: '0.62',
      Target: '0.6',
      Move: '+0.02 (+3.3 %) from 0.6',
      'Skipped before': '2 events',
    });
  });

  it('of a wallet has the transfers, or the balance', () => {
    const texts = (['transaction', 'balance_change'] as const).map((type) =>
      chatMessage(bodyOf(type), {}).fields.map(({ name, value }) => `${name}: ${value}`),
    );
    expect(texts[0]).toContain('Transfers: +25 Yes');
    expect(texts[1]).toEqual(['Outcome: Yes', 'Balance: 125', 'Move: +25 from 100']);
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

  it('meets the schema of the service with any text', () => {
    const hostile = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 400 }),
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
