import { span } from '../../../src/domain/values/durations.ts';
import type { ApiError } from '../../errors.ts';
import { type FormView, formView } from '../kit/form-view.ts';
import { actionButton, actionForm } from '../kit/forms.ts';
import { ago, badge, facts, type Html, html, longText, NONE, type Tone, table } from '../kit/html.ts';
import { PAGE_ROWS, pager, switches } from '../kit/lists.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import type { PageContent } from '../kit/router.ts';
import { shortId } from '../kit/shown-values.ts';
import { alertChange, alertFields, atAlertFields, editFields, newAlertBody } from './alert-fields.ts';
import { alertButtons, alertPreview, ENTER_BUTTON, suggestedTarget } from './alert-form.ts';
import { TRIAL_PATH } from './alert-picks/field.ts';
import { readPicks, requirePicks, settlePicks } from './alert-picks/picks.ts';
import { alertSentence, fullClause, readAlertNames } from './alert-sentence.ts';
import { alertTrial, atTrialFields, briefTrial, trialRange } from './alert-trial.ts';
import { destinationName, readWebhooks } from './alert-webhooks.ts';
import { distance, firesWhen, subjectOf, targetOf } from './alert-words.ts';
import type { Alert, Firing, Webhook } from './answers.ts';
import { type Names, namesOf } from './named-outcomes.ts';
import { programExamples, quoted, quotedForPython } from './program.ts';
import type { ActionRequest, ConsoleRequest, ConsoleRouter } from './route.ts';
import { amount, marketPath, minute, percent, price } from './values.ts';

const PATH = '/alerts';
const NEW_PATH = TRIAL_PATH;
const TONES: Readonly<Record<string, Tone>> = { active: 'good', paused: 'warn', triggered: 'idle', expired: 'idle' };
const CRUMBS = html`<p class="crumbs"><a href="${PATH}">Alerts</a></p>`;

type AlertsDeps = Pick<PageDeps, 'db' | 'venues'>;

/** /alerts: the account's alerts with their firings; their creation, change, pause and deletion. */
export function alertPages(router: ConsoleRouter, deps: AlertsDeps): void {
  const [section, scope] = ['alerts', 'alerts'] as const;
  const call = (request: Pick<ConsoleRequest, 'params'>) => ({
    operationId: 'getAlert',
    params: { alert_id: request.params['alert_id'] ?? '' },
  });

  router.page({
    path: PATH,
    section,
    scope,
    async load(request) {
      const status = request.query.get('status') ?? 'active';
      const query = { status, limit: PAGE_ROWS, cursor: request.query.get('cursor') ?? undefined };
      const list = { operationId: 'listAlerts', query };
      const { data: alerts, meta, text } = await request.api<Alert[]>(list);
      const names = await namesOf(
        deps,
        request,
        alerts.map(({ tokenMint }) => tokenMint),
      );
      const body = html`<p><a class="button" data-new-alert href="${NEW_PATH}">New alert</a></p>
<div class="switches">${switches(request, 'status', 'Status', [
        ['active', 'Active'],
        ['paused', 'Paused'],
        ['triggered', 'Fired'],
        ['expired', 'Expired'],
      ])}</div>
${alertTable(alerts, names, status, request.nowMs)}
${pager(request, meta.next_cursor)}
${programExamples(request, {
  calls: [['these alerts', list]],
  typescript: `for await (const alert of client.alerts.iterate({ status: ${quoted(status)} })) console.log(alert);`,
  python: `for alert in client.alerts.iterate(status=${quotedForPython(status)}):
    print(alert)`,
  json: text,
})}`;
      return { title: 'Alerts', body };
    },
  });

  router.page({
    path: NEW_PATH,
    section,
    scope,
    load: async (request) => newPage(deps, request, await settlePicks(deps, request, request.query)),
  });

  router.action({
    path: TRIAL_PATH,
    section,
    scope,
    async run(request) {
      const form = await settlePicks(deps, request, request.form);
      const isPreview = form.has('preview');
      const isOfPick = form.has('search') || request.form.has('rechoose');
      const trial = isPreview
        ? await briefTrial(deps, { ...request, form })
        : isOfPick
          ? undefined
          : await alertTrial(deps, { ...request, form });
      return { page: await newPage(deps, request, form, { trial }) };
    },
    async rejected(request, error) {
      const form = await settlePicks(deps, request, request.form);
      const lead = 'The alert was not tried, and nothing was saved.';
      return newPage(deps, request, form, { error: atAlertFields(atTrialFields(error), form), lead });
    },
  });

  router.action({
    path: PATH,
    section,
    scope,
    async run(request) {
      const form = await settlePicks(deps, request, request.form);
      const body = newAlertBody(form);
      requirePicks(form, body);
      const once = form.get('once') ?? '';
      const { data } = await request.api<Alert>({ operationId: 'createAlert', body, once });
      const names = await namesOf(deps, request, [data.tokenMint]);
      const times = data.repeat || data.scope !== undefined ? 'it fires' : 'it fires once,';
      const result = `The alert is set: ${times} ${words(data, names)}.`;
      const back = form.get('back') ?? '';
      return { result, to: /^\/markets\/[^/]+\/[^/]+$/.test(back) ? back : `${PATH}/${data.id}` };
    },
    async rejected(request, error) {
      const form = await settlePicks(deps, request, request.form);
      return newPage(deps, request, form, { error: atAlertFields(error, form) });
    },
  });

  router.page({
    path: `${PATH}/:alert_id`,
    section,
    scope,
    async load(request) {
      const { data: alert, text } = await request.api<Alert>(call(request));
      const firings = alert.firings ?? [];
      const [names, own, webhooks] = await Promise.all([
        namesOf(deps, request, [alert.tokenMint, ...firings.map(({ tokenMint }) => tokenMint)]),
        readAlertNames(deps, request, alert),
        readWebhooks(request),
      ]);
      const body = html`${alertSentence(alert, own, webhooks)}
${alertFacts(request, alert, names, webhooks)}
${alert.note !== undefined && html`<p class="long note">${alert.note}</p>`}
<div class="actions">${alertActions(request, alert)}</div>
<h2>Firings</h2>
${firingTable(request, alert, firings, names)}
${programExamples(request, {
  calls: [
    ['this alert', call(request)],
    ['pause it', { ...call(request), operationId: 'updateAlert', body: { status: 'paused' } }],
  ],
  typescript: `const alert = await client.alerts.get(${quoted(alert.id)});`,
  python: `alert = client.alerts.get(${quotedForPython(alert.id)})`,
  json: text,
})}`;
      return { title: alert.name ?? capital(fullClause(alert, own)), above: CRUMBS, body };
    },
  });

  const editPage = async (request: ConsoleRequest, view: FormView): Promise<PageContent> => {
    const { data: alert } = await request.api<Alert>(call(request));
    const [names, webhooks] = await Promise.all([readAlertNames(deps, request, alert), readWebhooks(request)]);
    const path = `${PATH}/${alert.id}`;
    const body = html`${alertSentence(alert, names, webhooks)}${actionForm(
      request,
      `${path}/edit`,
      html`${view.withReasons(editFields(view, alert, webhooks))}
<div class="actions"><button type="submit" class="primary">Save</button><a class="button" href="${path}">Cancel</a></div>`,
      'form card alert-edit',
    )}`;
    return { title: 'Edit alert', above: CRUMBS, body };
  };

  router.page({ path: `${PATH}/:alert_id/edit`, section, scope, load: (request) => editPage(request, formView()) });

  router.action({
    path: `${PATH}/:alert_id/edit`,
    section,
    scope,
    async run(request) {
      const { data: alert } = await request.api<Alert>(call(request));
      const body = alertChange(request.form, alert);
      const to = `${PATH}/${alert.id}`;
      if (Object.keys(body).length === 0) return { result: 'Nothing was changed.', to };
      await request.api({ ...call(request), operationId: 'updateAlert', body });
      return { result: 'The alert is changed.', to };
    },
    rejected: (request, error) => editPage(request, formView(request.form, error)),
  });

  router.action({
    path: `${PATH}/:alert_id/status`,
    section,
    scope,
    async run(request) {
      const status = request.form.get('status') ?? '';
      const { data } = await request.api<Alert>({ ...call(request), operationId: 'updateAlert', body: { status } });
      const result =
        data.status === 'paused'
          ? 'The alert is paused.'
          : 'The alert is active. It looks at observations from now on.';
      return { result, to: `${PATH}/${data.id}` };
    },
  });

  router.action({
    path: `${PATH}/:alert_id/delete`,
    section,
    scope,
    async run(request) {
      await request.api({ ...call(request), operationId: 'deleteAlert' });
      return { result: 'The alert is deleted.', to: PATH };
    },
  });
}

/** The form of a new alert, with the values of the address or of an attempt. `trial`: its firings on the past. */
async function newPage(
  deps: AlertsDeps,
  request: ConsoleRequest | ActionRequest,
  form: URLSearchParams,
  { trial, error, lead }: { trial?: Html | undefined; error?: ApiError; lead?: string } = {},
): Promise<PageContent> {
  const [suggestion, webhooks] = await Promise.all([suggestedPrice(deps, request, form), readWebhooks(request)]);
  if (suggestion !== undefined) form.set('price', suggestion);
  const view = formView(form.size === 0 ? undefined : form, error, lead);
  const isPreview = form.has('preview');
  const [picks, preview] = await Promise.all([
    readPicks(deps, request, form, { search: !isPreview }),
    alertPreview(deps, request, form, { webhooks, trial }),
  ]);
  const venues = deps.venues.filter(({ capabilities }) => capabilities.markets).map(({ venue }) => venue);
  // The reasons name the labels of all fields.
  const buttons = alertButtons(trialRange(view));
  const body = actionForm(
    request,
    PATH,
    html`${ENTER_BUTTON}<div class="form alert-parts"><input type="hidden" name="back" value="${view.value('back')}">
${view.withReasons(alertFields(view, { webhooks, venues, picks }))}</div>
${preview}
${buttons}`,
    'card alert-fields alert-new',
  );
  return { title: 'New alert', above: CRUMBS, body, scripts: ['alert-new.js'] };
}

/** The price for an outcome that was just chosen, or that the address names, when the form has none. */
async function suggestedPrice(
  deps: AlertsDeps,
  request: ConsoleRequest,
  form: URLSearchParams,
): Promise<string | undefined> {
  const token = form.get('tokenMint') ?? '';
  if (token === '' || (form.has('price') && !form.has('chose')) || (form.get('price') ?? '') !== '') return undefined;
  const price = (await namesOf(deps, request, [token])).get(token)?.price;
  return price == null ? undefined : String(suggestedTarget(Number(price)));
}

/** The condition in words. Markets of a scope have outcomes, whose prices are probabilities. */
function words(alert: Alert, names: Names): string {
  return firesWhen(alert, alert.tokenMint === undefined || names.has(alert.tokenMint));
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function alertTable(alerts: readonly Alert[], names: Names, status: string, nowMs: number): Html {
  const nameOf = ({ tokenMint = '' }: Alert) => names.get(tokenMint);
  const isWaiting = status === 'active' || status === 'paused';
  return table<Alert>({
    caption: 'Alerts, newest first',
    columns: [
      { label: 'Watches', cell: (alert) => subjectOf(alert, nameOf(alert), 'row-link') },
      {
        label: 'Fires',
        cell: (alert) =>
          html`<a data-row href="${PATH}/${alert.id}">${words(alert, names)}</a>${alert.name !== undefined && html`<span class="where long">${alert.name}</span>`}`,
      },
      ...(isWaiting
        ? [
            { label: 'Now', isNumeric: true, cell: (alert: Alert) => percent(nameOf(alert)?.price) ?? NONE },
            {
              label: 'Distance',
              isNumeric: true,
              cell: (alert: Alert) => distance(targetOf(alert), nameOf(alert)?.price),
            },
            { label: 'Last fired', cell: ({ triggeredAt }: Alert) => ago(dateOf(triggeredAt), nowMs) },
          ]
        : [
            {
              label: status === 'triggered' ? 'Fired' : 'Expired',
              cell: ({ triggeredAt, expiredAt }: Alert) => ago(dateOf(triggeredAt ?? expiredAt), nowMs),
            },
            { label: 'Event', cell: ({ eventId }: Alert) => (eventId === undefined ? NONE : shortId(eventId)) },
          ]),
      { label: 'Created', cell: ({ createdAt }) => ago(dateOf(createdAt), nowMs) },
    ],
    rows: alerts,
    empty: html`No alerts here. <a href="/markets">Open a market</a> and click a price, or set a <a href="${NEW_PATH}">new alert</a>.`,
  });
}

function alertFacts(
  { nowMs, session }: ConsoleRequest,
  alert: Alert,
  names: Names,
  webhooks: readonly Webhook[] | undefined,
): Html {
  const { webhookId, cooldownSeconds } = alert;
  const name = names.get(alert.tokenMint ?? '');
  const hasWebhooks = session.caller.scopes.includes('webhooks');
  return facts([
    ['Watches', subjectOf(alert, name)],
    ['State', badge(TONES[alert.status] ?? 'idle', alert.status)],
    ['Fires', words(alert, names)],
    ...(targetOf(alert) === undefined
      ? []
      : ([
          [`Target${alert.currency === undefined ? '' : ` (${alert.currency})`}`, price(alert.price)],
          ['Price now', name ? (percent(name.price) ?? NONE) : NONE],
          ['Distance', distance(alert.price, name?.price)],
        ] as const)),
    ['Repeats', cooldownSeconds === undefined ? 'no' : `after ${span(cooldownSeconds)}`],
    [
      'Webhook',
      webhookId === undefined
        ? (destinationName(webhooks) ?? 'none: no active webhook lists price_alert')
        : hasWebhooks
          ? html`<a href="/webhooks/${webhookId}">${shortId(webhookId)}</a>`
          : shortId(webhookId),
    ],
    ['Ends (UTC)', minute(dateOf(alert.expiresAt))],
    ['Created (UTC)', html`${minute(dateOf(alert.createdAt))} (${ago(dateOf(alert.createdAt), nowMs)})`],
    ['Last fired (UTC)', minute(dateOf(alert.triggeredAt))],
    ['Event', alert.eventId === undefined ? NONE : longText(alert.eventId)],
    ['Id', html`<code>${alert.id}</code>`],
  ]);
}

function alertActions(request: ConsoleRequest, { id, status }: Alert): Html {
  const path = `${PATH}/${id}`;
  const isPaused = status === 'paused';
  return html`${
    (isPaused || status === 'active') &&
    html`<a class="button" href="${path}/edit">Edit</a>${actionButton(request, {
      action: `${path}/status`,
      label: isPaused ? 'Resume' : 'Pause',
      fields: html`<input type="hidden" name="status" value="${isPaused ? 'active' : 'paused'}">`,
    })}`
  }${actionButton(request, {
    action: `${path}/delete`,
    label: 'Delete alert',
    isDangerous: true,
    confirm: 'The alert is removed. An event that it made stays.',
  })}`;
}

function firingTable({ nowMs }: ConsoleRequest, alert: Alert, firings: readonly Firing[], names: Names): Html {
  // An alert of the specification has its only firing in its own fields.
  const { triggeredAt, triggeredPrice, eventId, tokenMint } = alert;
  const only: Firing[] =
    triggeredAt === undefined || eventId === undefined
      ? []
      : [
          {
            at: triggeredAt,
            eventId,
            ...(tokenMint !== undefined && { tokenMint }),
            ...(triggeredPrice !== undefined && { price: triggeredPrice }),
          },
        ];
  const shown = firings.length > 0 ? firings : only;
  return table<Firing>({
    caption: 'Firings, newest first',
    columns: [
      {
        label: 'Time (UTC)',
        cell: ({ at }) => html`${minute(new Date(at))} <span class="muted">${ago(new Date(at), nowMs)}</span>`,
      },
      { label: 'Outcome', cell: (firing) => firingSubject(firing, names) },
      {
        label: 'Price',
        isNumeric: true,
        cell: (firing) => (names.has(firing.tokenMint ?? '') ? (percent(firing.price) ?? NONE) : price(firing.price)),
      },
      ...(shown.some(({ value }) => value !== undefined)
        ? [{ label: 'Value', isNumeric: true, cell: ({ value }: Firing) => amount(value) }]
        : []),
      { label: 'Event', cell: (firing) => html`<code class="long">${firing.eventId}</code>` },
    ],
    rows: shown,
    empty: 'It has not fired yet.',
  });
}

function firingSubject({ tokenMint = '', venue, marketId }: Firing, names: Names): Html {
  const name = names.get(tokenMint);
  if (name !== undefined) return html`${name.title} · ${name.label}`;
  if (venue === undefined || marketId === undefined) return tokenMint === '' ? NONE : html`${shortId(tokenMint)}`;
  return html`<a href="${marketPath({ venue, market_id: marketId })}">market ${shortId(marketId)}</a>`;
}

function dateOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}
