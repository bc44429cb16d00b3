import { SCOPES, type Scope } from '../../../src/domain/values/api-key.ts';
import { DAY_MS } from '../../../src/domain/values/durations.ts';
import { readArchiveUse } from '../../../src/store/accounts/archive-use.ts';
import { type AccountQuotas, type Quota, readAccountQuotas } from '../../../src/store/accounts/quotas.ts';
import { MAX_WIDE_SCOPES } from '../../../src/store/alerts/scopes.ts';
import { type AccountUsage, MAX_COUNTED_OF_ACCOUNT, readAccountUsage } from '../../../src/store/ops/account-usage.ts';
import type { StreamDeps } from '../../streams/port.ts';
import { type FormView, formView } from '../kit/form-view.ts';
import { actionButton, actionForm, onceShown } from '../kit/forms.ts';
import { ago, badge, facts, type Html, type HtmlValue, html, longText, NONE, number, table } from '../kit/html.ts';
import { PAGE_ROWS, pager, switches } from '../kit/lists.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import type { PageContent } from '../kit/router.ts';
import type { ApiKey } from './answers.ts';
import { SECTIONS } from './layout.ts';
import { programExamples } from './program.ts';
import type { ActionRequest, ConsoleRequest, ConsoleRouter } from './route.ts';

const { path: PATH } = SECTIONS.usage;
const KEYS_PATH = `${PATH}/keys`;
const scope: Scope = 'keys';
const MEGABYTE = 1_000_000;

type UsageDeps = Pick<PageDeps, 'db' | 'limits' | 'quotas'> & StreamDeps;

/** /usage: who is signed in, the limits of the account, and its keys. */
export function usagePages(router: ConsoleRouter, deps: UsageDeps): void {
  const section = 'usage';
  const load = (request: ConsoleRequest, view: FormView) => usagePage(deps, request, view);
  router.page({ path: PATH, section, load: (request) => load(request, formView()) });

  router.action({
    path: KEYS_PATH,
    section,
    scope,
    async run({ api, form }) {
      const expires = form.get('expiresAt') ?? '';
      const { data, isReplay } = await api<ApiKey & { key: string }>({
        operationId: 'createKey',
        body: {
          name: (form.get('name') ?? '').trim(),
          scopes: form.getAll('scopes'),
          ...(expires !== '' && { expiresAt: endOfDay(expires) }),
        },
        once: form.get('once') ?? '',
      });
      return { page: newKeyPage(data, isReplay) };
    },
    rejected: (request: ActionRequest, error) => load(request, formView(request.form, error)),
  });

  router.action({
    path: `${KEYS_PATH}/:key_id/revoke`,
    section,
    scope,
    async run({ api, params }) {
      const { data } = await api<ApiKey>({ operationId: 'revokeKey', params: { key_id: params['key_id'] ?? '' } });
      return { result: `The key “${data.name}” is revoked. All processes reject it within a second.`, to: PATH };
    },
  });
}

/** The only page that shows a key, at its creation. A reload shows the page without the key. */
function newKeyPage({ name, scopes, key }: ApiKey & { key: string }, isReplay: boolean): PageContent {
  return {
    title: 'New key',
    body: html`<p class="lead">Name: “${name}”. Scopes: ${scopes.join(', ')}.</p>
<div class="card">${isReplay ? html`<h2>The key was shown once, at its creation.</h2>` : onceShown('key', key)}
<p class="hint">oddswire stores only a hash of the key. If you lose the key, revoke it and create another one.</p></div>
<div class="actions under"><a class="button" href="${PATH}">Done</a></div>`,
  };
}

async function usagePage(deps: UsageDeps, request: ConsoleRequest, view: FormView): Promise<PageContent> {
  const { accountName, keyName, caller } = request.session;
  const [objects, archive, quotas, keys] = await Promise.all([
    readAccountUsage(deps.db, caller.accountId),
    readArchiveUse(deps.db, caller.accountId, deps.quotas.archiveMbPerDay),
    readAccountQuotas(deps.db, accountName),
    caller.scopes.includes(scope) ? keySection(request, view) : undefined,
  ]);
  const body = html`${facts([
    ['Account', accountName],
    ['Signed in with the key', keyName],
    ['Id of the key', html`<code>${caller.keyId}</code>`],
    ['Scopes', caller.scopes.join(', ')],
  ])}
<h2>Limits</h2>
${limitTable(limitsOf(deps, request, { ...objects, archive }, quotas))}
<p class="hint">An operator can change the limits of an account. Requests and cold reads are counted in all processes together, at most a second late;
streams in the process that shows this page.</p>
${keys ?? html`<h2>Keys</h2><p class="empty">This session does not have the scope <code>keys</code>, so it shows no keys.</p>`}
<h2>Sessions</h2>
<p class="lead">This browser keeps a session, not the key.
The session ends after 12 hours, and at once when the key is revoked or expires.</p>
${actionButton(request, {
  action: '/sign-out-everywhere',
  label: 'Sign out everywhere',
  isDangerous: true,
  confirm: 'Every browser that is signed in to this account has to sign in again. Keys stay valid.',
})}`;
  return { title: 'Usage', body };
}

interface Limit {
  name: string;
  /** Null: no limit. */
  limit: number | null;
  used: number;
  note?: HtmlValue;
}

function limitsOf(
  { limits, streams, quotas: defaults }: UsageDeps,
  { session }: ConsoleRequest,
  used: AccountUsage & { archive: Awaited<ReturnType<typeof readArchiveUse>> },
  quotas: AccountQuotas | null,
): Limit[] {
  const { accountId, coldReadsPerMinute } = session.caller;
  const perMinute = (name: string, admission: ReturnType<UsageDeps['limits']['look']>): Limit =>
    admission === null
      ? { name, limit: null, used: 0, note: 'not counted' }
      : {
          name,
          limit: admission.limit,
          used: admission.limit - admission.remaining,
          note: html`${number(admission.remaining)} remain for ${number(admission.resetSeconds)} s`,
        };
  const quota = (name: string, of: Quota): Limit => ({
    name,
    used: used[of],
    limit: quotas?.[of] ?? defaults[of],
  });
  const open = streams.usageOf(accountId);
  return [
    perMinute('Requests, this minute', limits.look('requests', accountId, session.ratePerMinute)),
    perMinute('Cold reads, this minute', limits.look('cold_reads', accountId, coldReadsPerMinute)),
    quota('Webhooks', 'webhooks'),
    quota('Active alerts', 'alerts'),
    { name: 'Active alerts on a venue, category or search', used: used.wideAlerts, limit: MAX_WIDE_SCOPES },
    quota('Watched wallets', 'wallets'),
    quota('Active keys', 'keys'),
    {
      name: 'Archive, megabytes of this UTC day',
      used: Math.ceil(used.archive.used / MEGABYTE),
      limit: used.archive.limit / MEGABYTE,
    },
    { name: 'Open streams', used: open.connections, limit: open.connectionsLimit },
    { name: 'Subscriptions of streams', used: open.subscriptions, limit: open.subscriptionsLimit },
  ];
}

function limitTable(limits: readonly Limit[]): Html {
  return html`<div class="limits">${table<Limit>({
    caption: 'Limits of the account',
    columns: [
      {
        label: 'Limit',
        cell: ({ name, note, used, limit }) =>
          html`${name}${note !== undefined && html`<span class="where">${note}</span>`}${
            note === undefined && limit !== null && used >= limit && html` ${badge('warn', 'used up')}`
          }`,
      },
      {
        label: 'Used',
        isNumeric: true,
        cell: ({ used, limit }) =>
          html`${number(used)}${used >= MAX_COUNTED_OF_ACCOUNT && '+'} <span class="muted">of ${limit === null ? 'no limit' : number(limit)}</span>`,
      },
      {
        label: 'Share',
        cell: ({ name, used, limit }) =>
          limit === null || limit === 0
            ? NONE
            : html`<meter min="0" max="${limit}" high="${limit * 0.8}" optimum="0" value="${Math.min(used, limit)}" aria-label="${name}"></meter>`,
      },
    ],
    rows: limits,
    empty: '',
  })}</div>`;
}

async function keySection(request: ConsoleRequest, view: FormView): Promise<Html> {
  const query = {
    status: request.query.get('status') ?? 'active',
    limit: PAGE_ROWS,
    cursor: request.query.get('cursor') ?? undefined,
  };
  const call = { operationId: 'listKeys', query };
  const { data: keys, meta, text } = await request.api<ApiKey[]>(call);
  // A rejected form has another address.
  const place = { path: PATH, query: request.query };
  return html`<h2 id="keys">Keys</h2>
${createForm(request, view)}
<div class="switches">${switches(place, 'status', 'State', [
    ['active', 'Active'],
    ['expired', 'Expired'],
    ['revoked', 'Revoked'],
  ])}</div>
${keyTable(request, keys)}
${pager(place, meta.next_cursor)}
${programExamples(request, {
  calls: [
    ['these keys', call],
    ['another key', { operationId: 'createKey', body: { name: 'laptop', scopes: ['markets:read'] } }],
  ],
  typescript: `for await (const key of client.keys.iterate({ status: 'active' })) console.log(key);`,
  python: `for each in client.keys.iterate(status="active"):
    print(each)`,
  json: text,
})}`;
}

function createForm(request: ConsoleRequest, view: FormView): Html {
  const { scopes } = request.session.caller;
  const own = SCOPES.filter((each) => scopes.includes(each));
  return html`<details class="fold" data-new-alert${view.isRejected && html` open`}><summary class="button">New key</summary>${actionForm(
    request,
    KEYS_PATH,
    html`${view.withReasons(html`${view.field({
      label: 'Name',
      name: 'name',
      isRequired: true,
      hint: 'For example the program that uses the key.',
    })}
${view.checks({
  label: 'Scopes',
  name: 'scopes',
  values: own.filter((each) => each !== scope),
  options: own.map((each) => [each, each] as const),
  hint: 'A key has at most the scopes of this session. With keys, its owner can create and revoke keys.',
})}
${view.field({ label: 'Expires', name: 'expiresAt', type: 'date', hint: 'End of this day, UTC. Empty: the end of the key of this session, or none if it has no end.' })}`)}
<button type="submit" class="primary">Create key</button>`,
    'form card',
  )}</details>`;
}

function keyTable(request: ConsoleRequest, keys: readonly ApiKey[]): Html {
  const { nowMs } = request;
  const dateOf = (text: string | undefined) => (text === undefined ? null : new Date(text));
  return table<ApiKey>({
    caption: 'Keys, newest first',
    columns: [
      {
        label: 'Name',
        cell: ({ name, current }) => html`${longText(name)}${current && html` ${badge('good', 'this session')}`}`,
      },
      { label: 'Id', cell: ({ id }) => html`<code>${id}</code>` },
      { label: 'Scopes', cell: ({ scopes }) => html`<span class="long">${scopes.join(', ')}</span>` },
      { label: 'Last used', cell: ({ lastUsedAt }) => ago(dateOf(lastUsedAt), nowMs) },
      { label: 'Created', cell: ({ createdAt }) => ago(dateOf(createdAt), nowMs) },
      {
        label: 'Ends',
        cell: ({ expiresAt, revokedAt }) =>
          revokedAt !== undefined ? html`revoked ${ago(dateOf(revokedAt), nowMs)}` : ago(dateOf(expiresAt), nowMs),
      },
      {
        label: 'Action',
        cell: ({ id, name, status, current }) =>
          status !== 'revoked' &&
          actionButton(request, {
            action: `${KEYS_PATH}/${encodeURIComponent(id)}/revoke`,
            label: 'Revoke',
            of: `the key ${name}`,
            isDangerous: true,
            confirm: current
              ? 'This session uses the key: you are signed out at once. Programs with the key get 401. This cannot be undone.'
              : 'Programs with the key get 401, and its streams and sessions end. This cannot be undone.',
          }),
      },
    ],
    rows: keys,
    empty: 'No keys here.',
  });
}

/** The end of a day in UTC; other text is for the API to reject. */
function endOfDay(text: string): string {
  const startMs = Date.parse(`${text}T00:00:00Z`);
  return Number.isNaN(startMs) ? text : new Date(startMs + DAY_MS).toISOString();
}
