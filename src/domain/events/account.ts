import { type Data, type Field, joined, numberOf, textOf, word } from '../webhooks/chat-values.ts';
import { eventBody, webhookFailingBody, webhookPausedBody } from '../webhooks/event-body.ts';
import { type EventDefinition, SAMPLE_FAILURE } from './definition.ts';

const SAMPLE_TROUBLE = {
  webhookId: 'wh_sample',
  failingSince: SAMPLE_FAILURE,
  lastError: 'http_status',
  lastStatusCode: 502,
};

export const webhookFailing: EventDefinition = {
  summary: 'Another webhook of the account fails',
  text: (data) => ({ facts: joined(word(data['lastError']), word(data['webhookId'])) }),
  chat: (data) => ({ title: 'A webhook fails', fields: troubleFields(data) }),
  sample: (stamp) => webhookFailingBody({ ...stamp, ...SAMPLE_TROUBLE }),
};

export const webhookPaused: EventDefinition = {
  summary: 'oddswire paused another webhook of the account',
  text: (data) => ({ facts: joined(word(data['reason']), word(data['webhookId'])) }),
  chat: (data) => ({
    title: 'A webhook is paused',
    fields: [['Reason', textOf(data['reason'])], ...troubleFields(data)],
  }),
  sample: (stamp) => webhookPausedBody({ ...stamp, ...SAMPLE_TROUBLE, reason: 'failing' }),
};

/** Sent on request only. Its data are `{test: true, webhookId}`. */
export const testEvent: EventDefinition = {
  summary: 'A client requested a test event',
  text: (data) => ({ facts: word(data['webhookId']) }),
  chat: () => ({ title: 'Test message of oddswire', fields: [['Result', 'This webhook works.']] }),
  sample: (stamp, webhookId) => eventBody('test', stamp, { test: true, webhookId }),
};

function troubleFields(data: Data): Field[] {
  return [
    ['Webhook', textOf(data['webhookId'])],
    ['Failing since', textOf(data['failingSince'])],
    ['Last error', joined(textOf(data['lastError'])?.replaceAll('_', ' '), numberOf(data['lastStatusCode']))],
  ];
}
