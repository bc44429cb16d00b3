import { z } from 'zod';
import type { ReceivedRequest, Reply } from '../../sim/receiver.ts';

/*
 * The requests that chat services accept, from their public references: Discord "Execute Webhook" and "Embed Limits", Slack "Incoming
 * webhooks" and "Block Kit", Telegram Bot API "sendMessage". Unknown fields fail, so a misspelled one shows.
 */

const discordEmbed = z
  .strictObject({
    title: z.string().min(1).max(256),
    url: z.url().max(2_048).optional(),
    description: z.string().max(4_096).optional(),
    fields: z
      .array(
        z.strictObject({ name: z.string().min(1).max(256), value: z.string().min(1).max(1_024), inline: z.boolean() }),
      )
      .max(25),
    timestamp: z.iso.datetime(),
    footer: z.strictObject({ text: z.string().min(1).max(2_048) }),
  })
  .refine(
    ({ title, fields, footer }) =>
      title.length +
        footer.text.length +
        fields.reduce((sum, { name, value }) => sum + name.length + value.length, 0) <=
      6_000,
  );
export const discordMessage = z.strictObject({
  embeds: z.array(discordEmbed).min(1).max(10),
  allowed_mentions: z.strictObject({ parse: z.array(z.never()) }),
});

/** Without `verbatim`, Slack parses some mentions of a text without brackets. */
const mrkdwn = (limit: number) =>
  z.strictObject({ type: z.literal('mrkdwn'), text: z.string().min(1).max(limit), verbatim: z.literal(true) });
const slackBlock = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('header'),
    text: z.strictObject({ type: z.literal('plain_text'), text: z.string().min(1).max(150), emoji: z.boolean() }),
  }),
  z.strictObject({ type: z.literal('section'), fields: z.array(mrkdwn(2_000)).min(1).max(10) }),
  z.strictObject({ type: z.literal('context'), elements: z.array(mrkdwn(3_000)).min(1).max(10) }),
]);
export const slackMessage = z.strictObject({
  text: z.string().min(1).max(40_000),
  blocks: z.array(slackBlock).min(1).max(50),
  unfurl_links: z.boolean(),
  unfurl_media: z.boolean(),
});

/** The tags that the messages use, of the HTML style: each opened tag is closed, and no other `<` or bare `&` occurs. */
const TELEGRAM_TAG = /<(b|i)>([^<>]*)<\/\1>|<a href="[^"<>]*">([^<>]*)<\/a>/g;
function plainTelegramText(html: string): string | null {
  const text = html.replace(TELEGRAM_TAG, (_, _tag, inTag?: string, inLink?: string) => inTag ?? inLink ?? '');
  if (/[<>]|&(?!(amp|lt|gt|quot);)/.test(text)) return null;
  return text.replace(/&(amp|lt|gt|quot);/g, '.');
}
export const telegramMessage = z.strictObject({
  chat_id: z.string().min(1),
  message_thread_id: z.int().positive().optional(),
  text: z.string().refine((html) => {
    const text = plainTelegramText(html);
    // The service makes a mention of each @name.
    return text !== null && text.length >= 1 && text.length <= 4_096 && !/@\w/.test(text);
  }),
  parse_mode: z.literal('HTML'),
  link_preview_options: z.strictObject({ is_disabled: z.literal(true) }),
});

export const SCHEMAS = { discord: discordMessage, slack: slackMessage, telegram: telegramMessage } as const;

/** The paths of the local services. */
export const PATHS = {
  discord: '/api/webhooks/1234567890/discord-token',
  slack: '/services/T00000000/B00000000/slack-token',
  telegram: '/bot123456:telegram-token/sendMessage?chat_id=-1001234',
} as const;

interface Service {
  path: string;
  schema: z.ZodType;
  accepted: Reply;
  refused: Reply;
  limited: Reply;
}

const json = (value: unknown) => JSON.stringify(value);
const SERVICES: Readonly<Record<keyof typeof SCHEMAS, Service>> = {
  discord: {
    path: PATHS.discord,
    schema: discordMessage,
    accepted: { status: 204, body: '' },
    refused: { status: 400, body: json({ code: 50_035, message: 'Invalid Form Body' }) },
    limited: { status: 429, body: json({ message: 'You are being rate limited.', retry_after: 7.5, global: false }) },
  },
  slack: {
    path: PATHS.slack,
    schema: slackMessage,
    accepted: { status: 200, body: 'ok' },
    refused: { status: 400, body: 'invalid_payload' },
    limited: { status: 429, headers: { 'retry-after': '7' }, body: 'rate_limited' },
  },
  telegram: {
    path: '/bot123456:telegram-token/sendMessage',
    schema: telegramMessage,
    accepted: { status: 200, body: json({ ok: true, result: { message_id: 1 } }) },
    refused: {
      status: 400,
      body: json({ ok: false, error_code: 400, description: "Bad Request: can't parse entities" }),
    },
    limited: {
      status: 429,
      body: json({ ok: false, error_code: 429, description: 'Too Many Requests', parameters: { retry_after: 7 } }),
    },
  },
};

/** The answer of the local chat services: 400 for a body outside of their schema, 404 elsewhere, 429 while `isLimited`. */
export function answerOfService({ path, json: body }: ReceivedRequest, isLimited = false): Reply {
  const service = Object.values(SERVICES).find((each) => each.path === path);
  if (service === undefined) return { status: 404 };
  if (isLimited) return service.limited;
  return service.schema.safeParse(body).success ? service.accepted : service.refused;
}
