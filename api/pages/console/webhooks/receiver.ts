import { type Html, html } from '../../kit/html.ts';
import { switches } from '../../kit/lists.ts';
import type { Webhook } from '../answers.ts';
import { tab } from '../program.ts';
import type { ConsoleRequest } from '../route.ts';
import { LANGUAGES, type Language, receiverSnippet } from './receiver-snippets.ts';

const LABELS: Readonly<Record<Language, string>> = { typescript: 'TypeScript', python: 'Python', go: 'Go' };
const NEEDS: Readonly<Record<Language, string>> = {
  typescript: 'npm install @oddswire/client',
  python: 'pip install oddswire',
  go: 'Only the standard library.',
};

/** A whole receiver for a webhook in each language. The secret comes from the environment of the receiver. */
export function receiverSection(
  request: Pick<ConsoleRequest, 'query' | 'path'>,
  { events, ordered, format }: Pick<Webhook, 'events' | 'ordered' | 'format'>,
): Html {
  const head = html`<h2 id="receiver-title">Receiver</h2>`;
  if (format !== undefined) {
    return html`${head}<p class="empty">oddswire sends messages to ${format}, without a signature. A receiver of your own needs a webhook without a format.</p>`;
  }
  const signature = request.query.get('signature') === 'body' ? 'body' : 'standard';
  const options = { signature, events, isOrdered: ordered === true } as const;
  return html`<section class="program" aria-labelledby="receiver-title">${head}
<p class="lead">A complete receiver for this webhook. It reads the secret from <code>WEBHOOK_SECRET</code> and listens on <code>PORT</code>,
behind a proxy with TLS.</p>
<div class="switches">${switches(request, 'signature', 'Signature', [
    ['standard', 'Standard Webhooks'],
    ['body', 'X-Webhook-Signature'],
  ])}</div>
<p class="hint">${
    signature === 'standard'
      ? 'Checks webhook-signature: it also prevents a replay, and accepts both secrets after a rotation.'
      : 'Checks X-Webhook-Signature: it signs the body only, so it does not prevent a replay, and uses the new secret at once after a rotation.'
  }</p>
${LANGUAGES.map((language, index) =>
  tab(`receiver-${language}`, LABELS[language], receiverSnippet(language, options), {
    isOpen: index === 0,
    group: 'receiver',
    name: `Receiver in ${LABELS[language]}`,
    hint: NEEDS[language],
  }),
)}</section>`;
}
