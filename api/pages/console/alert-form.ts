import { shownUrl } from '../../../src/domain/webhooks/shown-url.ts';
import { actionButton, actionForm, choice, field } from '../kit/forms.ts';
import { type Html, html, table } from '../kit/html.ts';
import { alertButtons } from './alert-trial.ts';
import { distance, firesWhen, hasPriceTarget, targetOf } from './alert-words.ts';
import type { Alert, Decimal, Market, Webhook } from './answers.ts';
import type { ConsoleRequest } from './route.ts';
import type { Range } from './series.ts';
import { marketPath } from './values.ts';

const MAX_WEBHOOKS = 100;
const MAX_ALERTS = 50;

/** The alerts of one outcome, and the form for another. Empty without the scope. */
interface OutcomeAlerts {
  alerts: Alert[];
  webhooks: Webhook[];
}

export async function readOutcomeAlerts(
  request: ConsoleRequest,
  outcome: string | undefined,
): Promise<OutcomeAlerts | undefined> {
  const { scopes } = request.session.caller;
  if (outcome === undefined || !scopes.includes('alerts')) return undefined;
  const query = { tokenMint: outcome, status: 'active', limit: MAX_ALERTS };
  const [alerts, webhooks] = await Promise.all([
    request.api<Alert[]>({ operationId: 'listAlerts', query }),
    scopes.includes('webhooks')
      ? request.api<Webhook[]>({ operationId: 'listWebhooks', query: { limit: MAX_WEBHOOKS } })
      : undefined,
  ]);
  return { alerts: alerts.data, webhooks: webhooks?.data ?? [] };
}

/** Five points above a price; near 1, half of the way, so that the alert does not fire at once. */
function suggestedTarget(price: number): number {
  return price < 0.94 ? Math.round((price + 0.05) * 100) / 100 : Number(((1 + price) / 2).toFixed(6));
}

/** The section of a market page. The script opens the form at the price of a click on the chart. */
export function alertSection(
  request: ConsoleRequest,
  { market, range }: { market: Market; range: Range },
  outcome: Market['outcomes'][number],
  { alerts, webhooks }: OutcomeAlerts,
  present: Decimal | undefined,
): Html {
  const listening = webhooks.filter(({ status, events }) => status === 'active' && events.includes('price_alert'));
  const suggestion = present === undefined ? 0.5 : suggestedTarget(Number(present));
  const more = new URLSearchParams({ tokenMint: outcome.outcome_id, condition: 'change' }).toString();
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
  empty: 'No alerts yet. Click a price on the chart, or enter one here.',
})}
<details class="fold" id="alert-form" data-new-alert><summary class="button">New alert</summary>${actionForm(
    request,
    '/alerts',
    html`<div class="form"><input type="hidden" name="tokenMint" value="${outcome.outcome_id}"><input type="hidden" name="back" value="${marketPath(market)}"><input type="hidden" name="over" value="${range}">
${field({
  label: 'Price',
  name: 'price',
  value: String(suggestion),
  isRequired: true,
  hint: 'From 0 to 1: 0.25 is 25 %. The alert fires once, at the first price that touches or passes it.',
})}
<p class="hint" data-distance></p>
${choice({
  label: 'Fires at this price or',
  name: 'condition',
  value: 'above',
  options: [
    ['above', 'above'],
    ['below', 'below'],
  ],
})}
${choice({
  label: 'Webhook',
  name: 'webhookId',
  value: '',
  options: [['', 'the default webhook'], ...listening.map(({ id, url }) => [id, shownUrl(url)] as const)],
})}
${alertButtons()}
<p class="hint"><a href="/alerts/new?${more}">Changes, volume, trades and more conditions</a></p></div>
<div data-trial aria-live="polite"></div>`,
    'card alert-new',
  )}</details></section>`;
}
