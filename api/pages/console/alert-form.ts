import { findCondition } from '../../../src/domain/alerts/conditions.ts';
import { ApiError } from '../../errors.ts';
import { formView } from '../kit/form-view.ts';
import { actionButton, actionForm, hidden } from '../kit/forms.ts';
import { type Html, html, table } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { newAlertBody, outcomeAlertFields } from './alert-fields.ts';
import { TRIAL_PATH } from './alert-picks/field.ts';
import { alertSentence, readAlertNames } from './alert-sentence.ts';
import { readWebhooks } from './alert-webhooks.ts';
import { distance, firesWhen, hasPriceTarget, targetOf } from './alert-words.ts';
import type { Alert, Decimal, Market, Webhook } from './answers.ts';
import type { ConsoleRequest } from './route.ts';
import type { Range } from './series.ts';
import { marketPath } from './values.ts';

const MAX_ALERTS = 50;

/** The alerts of one outcome, and the form for another. Empty without the scope. */
interface OutcomeAlerts {
  alerts: Alert[];
  /** Undefined for a key that must not read them. */
  webhooks: Webhook[] | undefined;
}

export async function readOutcomeAlerts(
  request: ConsoleRequest,
  outcome: string | undefined,
): Promise<OutcomeAlerts | undefined> {
  if (outcome === undefined || !request.session.caller.scopes.includes('alerts')) return undefined;
  const query = { tokenMint: outcome, status: 'active', limit: MAX_ALERTS };
  const [alerts, webhooks] = await Promise.all([
    request.api<Alert[]>({ operationId: 'listAlerts', query }),
    readWebhooks(request),
  ]);
  return { alerts: alerts.data, webhooks };
}

/** Five points above a price; near 1, half of the way, so that the alert does not fire at once. */
export function suggestedTarget(price: number): number {
  return price < 0.94 ? Math.round((price + 0.05) * 100) / 100 : Number(((1 + price) / 2).toFixed(6));
}

/** The section of a market page. The script opens the form at a clicked price. */
export async function alertSection(
  deps: Pick<PageDeps, 'db'>,
  request: ConsoleRequest,
  { market, range }: { market: Market; range: Range },
  outcome: Market['outcomes'][number],
  { alerts, webhooks }: OutcomeAlerts,
  present: Decimal | undefined,
): Promise<Html> {
  const first = new URLSearchParams({
    tokenMint: outcome.outcome_id,
    condition: 'above',
    price: String(present === undefined ? 0.5 : suggestedTarget(Number(present))),
  });
  const fields = outcomeAlertFields(formView(first), outcome.outcome_id, { webhooks, picks: {} });
  const preview = await alertPreview(deps, request, first, { webhooks });
  return html`<section aria-labelledby="alerts-title" class="card alerts-card"><h2 id="alerts-title">Alerts on ${outcome.label}</h2>
${table<Alert>({
  caption: `Active alerts on ${outcome.label}`,
  columns: [
    {
      label: 'Fires',
      // The script draws a line at each target.
      cell: (alert) =>
        html`<a href="/alerts/${alert.id}"${hasPriceTarget(alert) && html` data-alert="${String(alert.price)}"`}>${firesWhen(alert, true)}</a>`,
    },
    { label: 'Distance', isNumeric: true, cell: (alert) => distance(targetOf(alert), present) },
    {
      label: 'Action',
      cell: (alert) =>
        actionButton(request, {
          action: `/alerts/${alert.id}/delete`,
          label: 'Delete',
          of: `the alert ${firesWhen(alert, true)}`,
        }),
    },
  ],
  rows: alerts,
  empty: 'No alerts yet. Click a price on the chart or in a table, or enter one here.',
})}
<details class="fold" id="alert-form" data-new-alert><summary class="button">New alert</summary>${actionForm(
    request,
    '/alerts',
    html`${ENTER_BUTTON}${hidden({ back: marketPath(market), over: range })}<div class="form alert-parts">${fields}</div>
${preview}
${alertButtons()}`,
    'card alert-fields alert-new',
  )}</details></section>`;
}

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

/** The button of the key Enter must come first in a form, before the buttons that choose its subjects. */
export const ENTER_BUTTON = html`<button type="submit" hidden>Set alert</button>`;

/** The buttons of a new alert. */
export function alertButtons(range?: Html): Html {
  return html`<div class="actions"><button type="submit" class="primary">Set alert</button>
<div class="try">${range}<button type="submit" formaction="${TRIAL_PATH}#trial" data-try>Try it on the past</button></div></div>`;
}
