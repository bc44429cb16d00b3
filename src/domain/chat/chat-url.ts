import { parseUrl } from '../values/parse-url.ts';

/** The formats of requests. `json` is the body of the event with signatures; the others are messages of chat services. */
export const CHAT_FORMATS = ['discord', 'slack', 'telegram'] as const;
export type ChatFormat = (typeof CHAT_FORMATS)[number];
export const WEBHOOK_FORMATS = ['json', ...CHAT_FORMATS] as const;
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];

const HIDDEN = '/***';

/** The URL of a chat webhook as answers, pages and logs show it: its path and query are a secret. */
export function redactedUrl(url: string): string {
  return `${new URL(url).origin}${HIDDEN}`;
}

/** Why a URL is not one of a chat webhook, beside the rules for every URL; null for a usable one. */
export function chatUrlProblem(format: ChatFormat, url: string): string | null {
  const parsed = parseUrl(url);
  if (!parsed) return 'is not a valid URL';
  const { pathname, searchParams } = parsed;
  if (pathname === HIDDEN) return 'must be the whole URL of the chat webhook';
  if (format !== 'telegram') return null;
  if (!/\/bot[^/]+\/sendMessage$/.test(pathname)) return 'must end with /bot<token>/sendMessage';
  return (searchParams.get('chat_id') ?? '') === '' ? 'must have the parameter chat_id' : null;
}

/** The owner of the sealed URL of a webhook, so that it cannot take the place of its secret. */
export function urlOwner(webhookId: string): string {
  return `${webhookId}:url`;
}
