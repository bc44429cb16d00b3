import type { ChatFacts, Content, Data } from '../webhooks/chat-values.ts';
import type { EventStamp } from '../webhooks/event-body.ts';

/** An event for a line on a terminal. A part without a fact is empty; no part can control the terminal. */
export interface EventText {
  /** The outcome, token or wallet, shortened. */
  readonly subject: string;
  readonly facts: string;
  /** The venue and the market, shortened. */
  readonly market: string;
}

/**
 * An event type in words, besides the schema of its data in api/contract/events. The data are foreign: an absent field leaves no trace,
 * and data of `parseExactJson` keep all digits.
 */
export interface EventDefinition {
  /** One line of the API reference. */
  readonly summary: string;
  /** The facts for a terminal. */
  text(data: Data): Partial<EventText>;
  /** The message for a chat service; undefined when the data are of a kind that it does not know. */
  chat(data: Data, facts: ChatFacts): Content | undefined;
  /** The delivery body with made-up values, so that users can test a receiver before the first event. */
  sample(stamp: EventStamp, webhookId: string): string;
}

/** The things of sample events. */
export const SAMPLE_TOKEN = { tokenMint: 'sample-outcome-yes', tokenSymbol: 'Yes' };
export const SAMPLE_MARKET = {
  venue: 'sample',
  marketId: 'sample-market',
  eventId: 'sample-event',
  title: 'Sample market',
  category: 'Sample',
};
export const SAMPLE_FAILURE = new Date('2026-01-01T00:00:00.000Z');
