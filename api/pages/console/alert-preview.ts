import { findCondition } from '../../../src/domain/alerts/conditions.ts';
import { ApiError } from '../../errors.ts';
import { type Html, html } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { newAlertBody } from './alert-fields.ts';
import { alertSentence, readAlertNames } from './alert-sentence.ts';
import type { Alert, Webhook } from './answers.ts';
import type { ConsoleRequest } from './route.ts';

/**
 * The effect of the alert of a form, beside its fields, with its firings on the past. A script replaces it when a field changes.
 * `webhooks` is undefined for a key that must not read them.
 */
export async function alertPreview(
  deps: Pick<PageDeps, 'db'>,
  request: ConsoleRequest,
  form: URLSearchParams,
  { webhooks, trial }: { webhooks: readonly Webhook[] | undefined; trial?: Html | undefined },
): Promise<Html> {
  return html`<aside class="alert-preview" data-preview aria-labelledby="preview-title"><h2 id="preview-title">What will happen</h2>
<div data-sentence aria-live="polite">${await sentenceOf(deps, request, form, webhooks)}</div>
<div data-trial>${trial}</div></aside>`;
}

async function sentenceOf(
  deps: Pick<PageDeps, 'db'>,
  request: ConsoleRequest,
  form: URLSearchParams,
  webhooks: readonly Webhook[] | undefined,
): Promise<Html> {
  try {
    const alert = draftOf(form);
    return alertSentence(alert, await readAlertNames(deps, request, alert), webhooks);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const reasons = error.details.map(({ message }) => message).join('; ');
    return html`<p class="sentence">A field cannot be read: ${reasons || error.message}.</p>`;
  }
}

/** The alert of a form that may lack fields, with the values that the form has at first. @throws ApiError for a value with two readings */
function draftOf(form: URLSearchParams): Alert {
  const full = new URLSearchParams(form);
  const first = {
    condition: 'above',
    unit: 'absolute',
    side: 'buy',
    spreadDirection: 'at_most',
    executableDirection: 'at_most',
  };
  for (const [name, value] of Object.entries(first)) if (!full.has(name)) full.set(name, value);
  if (findCondition(full.get('condition') ?? '') === undefined) full.set('condition', first.condition);
  const given = Object.entries(newAlertBody(full)).filter(([, value]) => value !== null);
  return Object.fromEntries(given) as unknown as Alert;
}
