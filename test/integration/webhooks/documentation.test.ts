import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PRICE_ALERT_EXAMPLES } from '../../../api/contract/events/event.ts';
import { type Receiver, startReceiver } from '../../../sim/receiver.ts';
import { loadConfig } from '../../../src/config/config.ts';
import { VARIABLES } from '../../../src/config/variables.ts';
import { EVENTS } from '../../../src/domain/events/events.ts';
import { toJsonText } from '../../../src/domain/values/api-json.ts';
import { type AttemptErrorCode, EVENT_TYPES } from '../../../src/domain/webhooks/event.ts';
import { EXCERPT_BYTES } from '../../../src/domain/webhooks/response-headers.ts';
import { generateSecret, secretProblem, standardKey } from '../../../src/domain/webhooks/signature.ts';
import { MAX_URL_LENGTH } from '../../../src/domain/webhooks/url.ts';
import { MAX_IN_FLIGHT } from '../../../src/store/deliveries/claims.ts';
import { decideRetry, RETRY_AFTER_CAP_SECONDS } from '../../../src/webhooks/retry-policy.ts';
import type { Sender } from '../../../src/webhooks/sender.ts';
import { ATTEMPT_ERROR_CODES } from '../../support/attempt-error-codes.ts';
import { delivery, testSender } from './deliveries.ts';
import { codeBlock, PAGE } from './documentation.ts';

const TEXT = PAGE.replace(/\s+/g, ' ');
const SCHEDULE_SECONDS = loadConfig({
  DATABASE_URL: 'postgres://h/d',
  SECRETS_KEYS: `k:${Buffer.alloc(32).toString('base64')}`,
}).webhooks.retryScheduleSeconds;
const DEADLINE_SECONDS = Number(VARIABLES.WEBHOOK_TIMEOUT_MS.default) / 1000;

/** The usual notation: `30 s`, `2 min`, `5 h`. */
function spoken(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  return seconds < 3600 ? `${seconds / 60} min` : `${seconds / 3600} h`;
}

function clock(seconds: number): string {
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min ${seconds % 60} s`;
}

/** The limits that a message names: `16 to 256`. */
function rangeIn(message: string | null): string | undefined {
  return message?.match(/\d+ to \d+/)?.[0];
}

function list(items: readonly string[]): string {
  return `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;
}

/** The number of attempts of a delivery when each fails with this code, or without a code. */
function attemptsOf(errorCode: AttemptErrorCode): number {
  for (let attemptNumber = 1; ; attemptNumber += 1) {
    const outcome = { kind: 'failed', errorCode, durationMs: 1 } as const;
    const decision = decideRetry({ outcome, attemptNumber, schedule: SCHEDULE_SECONDS, random: () => 0.5 });
    if (decision.state !== 'retry') return attemptNumber;
  }
}

describe('docs/webhooks.md', () => {
  const total = SCHEDULE_SECONDS.reduce((sum, seconds) => sum + seconds, 0);
  it.each([
    `any 2xx status within ${DEADLINE_SECONDS} seconds`,
    `no status within ${DEADLINE_SECONDS} seconds`,
    `The ${DEADLINE_SECONDS} seconds are one deadline`,
    `no connection (name, TCP, TLS) within 5 seconds`,
    `more than 16 KiB of headers, or 256 KiB without a status`,
    `At most 16 KiB of the answer's body are read`,
    `the first ${EXCERPT_BYTES / 1024} KiB are kept`,
    `replay after 300 seconds`,
    `the base64 of ${standardKey(generateSecret()).length} random bytes`,
    `${rangeIn(secretProblem('short'))} printable ASCII characters`,
    `canonical base64 of ${rangeIn(secretProblem('whsec_c2hvcnQga2V5'))} bytes`,
    `For 24 hours \`webhook-signature\` carries a signature of each`,
    `repeated after ${list(SCHEDULE_SECONDS.map(spoken))}:`,
    `${attemptsOf('http_status')} attempts in ${clock(total)}`,
    `longer or shorter by up to 20 %`,
    `Up to 20 % is added`,
    `twice the planned delay or ${RETRY_AFTER_CAP_SECONDS / 3600} hour`,
    `\`blocked_address\` ends after ${attemptsOf('blocked_address')} attempts, \`invalid_url\` after one`,
    `At most ${MAX_IN_FLIGHT} attempts of a subscription are in flight at once`,
    `after 5 days without a success and 10 deliveries that used up`,
    `port 443 or 1024 and up`,
    `at most ${MAX_URL_LENGTH} characters`,
    `after at most 30 seconds`,
    `The error codes of an attempt: ${ATTEMPT_ERROR_CODES.map((code) => `\`${code}\``).join(', ')}.`,
  ])('states: %s', (sentence) => expect(TEXT).toContain(sentence));

  it('states the right number of attempts', () => {
    expect(attemptsOf('invalid_url')).toBe(1);
  });

  it('names only existing variables', () => {
    const named = PAGE.match(/\bWEBHOOK_[A-Z_]+/g) ?? [];
    expect(named.length).toBeGreaterThan(0);
    for (const name of named) expect(VARIABLES).toHaveProperty(name);
  });
});

describe('the documented request', () => {
  let receiver: Receiver;
  let sender: Sender;
  beforeAll(async () => {
    receiver = await startReceiver();
    sender = await testSender({ extraCaPem: receiver.caPem });
  });
  afterAll(async () => {
    await sender.close();
    await receiver.close();
  });

  it('has the headers that the sender sends', async () => {
    await sender.send(delivery(receiver.url));
    const transport = ['host', 'connection', 'content-length'];
    const sent = Object.keys(receiver.requests[0]?.headers ?? {}).filter((name) => !transport.includes(name));
    const table = PAGE.split('## The request')[1]?.split('\n\n')[1] ?? '';
    const documented = [...table.matchAll(/^\| `([^`]+)`/gm)].map(([, name = '']) => name.toLowerCase());
    expect(documented.sort()).toEqual(sent.sort());
  });

  it.each(['change', 'status', 'correction'] as const)(
    'has the body of a %s alert, as the OpenAPI document has it',
    (condition) => {
      const example = toJsonText(PRICE_ALERT_EXAMPLES[condition], 'number');
      expect(JSON.parse(codeBlock(`json price_alert ${condition}`))).toEqual(JSON.parse(example));
    },
  );

  it.each(EVENT_TYPES)('has the body of a %s event', (type) => {
    const shown = JSON.parse(codeBlock(`json ${type}`)) as { id: string; timestamp: string };
    const stamp = { eventId: shown.id, occurredAt: new Date(shown.timestamp) };
    const made = EVENTS[type].sample(stamp, 'wh_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c02');
    expect(shown).toEqual(JSON.parse(made));
    expect(Object.keys(shown)).toEqual(['id', 'type', 'timestamp', 'data']);
  });
});
