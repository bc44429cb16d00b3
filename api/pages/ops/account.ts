import { readArchiveUse } from '../../../src/store/accounts/archive-use.ts';
import { type AccountQuotas, setAccountQuotas } from '../../../src/store/accounts/quotas.ts';
import type { Queryable } from '../../../src/store/db/tx.ts';
import { MAX_COUNTED_OF_ACCOUNT, readAccountUsage } from '../../../src/store/ops/account-usage.ts';
import { readExpiringKeys } from '../../../src/store/ops/actions.ts';
import { findOpsAccount, listOpsKeys, type OpsAccount } from '../../../src/store/ops/keys.ts';
import { countFailingEndpoints, listFailingEndpoints } from '../../../src/store/ops/overview.ts';
import { listPartlyFailing } from '../../../src/store/ops/webhooks.ts';
import { ApiError, type ErrorDetail, invalidRequest } from '../../errors.ts';
import { actionForm, field } from '../kit/forms.ts';
import { facts, type Html, type HtmlValue, html, number, time } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { problemsOf } from '../kit/problems.ts';
import type { OpsRequest, OpsRouter } from './actions.ts';
import { accountPath, keyTable } from './keys.ts';
import { expiringKeys } from './problems/others.ts';
import { PARTLY_MS } from './problems/read.ts';
import { failingWebhooks, partlyFailingWebhooks } from './problems/webhooks.ts';

/** The maximum of a Postgres integer column. */
const MAX_LIMIT = 2_147_483_647;

/** The limits of an account, with the labels of their form. */
const LIMIT_FIELDS = {
  webhooks: 'Webhooks',
  alerts: 'Active alerts',
  wallets: 'Wallets',
  keys: 'Active keys',
  ratePerMinute: 'Requests per minute',
  coldReadsPerMinute: 'Cold reads per minute',
  archiveMbPerDay: 'Archive, megabytes per day',
} as const satisfies Readonly<Record<keyof AccountQuotas, string>>;

const PATH = '/ops/accounts/:id';
const MAX_KEYS = 100;
const MAX_FAILING = 10;

/** One account: its usage, its quotas and its keys. */
export function accountPages(router: OpsRouter, deps: Pick<PageDeps, 'db' | 'quotas'>): void {
  router.page({
    path: PATH,
    section: 'keys',
    async load(request) {
      const account = await findAccount(deps.db, request.params);
      const { nowMs } = request;
      const [failing, failingTotal, partly, expiring, usage, archive, { keys, next }] = await Promise.all([
        listFailingEndpoints(deps.db, MAX_FAILING, account.id),
        countFailingEndpoints(deps.db, account.id),
        listPartlyFailing(deps.db, nowMs - PARTLY_MS, MAX_FAILING, account.id),
        readExpiringKeys(deps.db, account.id),
        readAccountUsage(deps.db, account.id),
        readArchiveUse(deps.db, account.id, deps.quotas.archiveMbPerDay),
        listOpsKeys(deps.db, { account: account.name, isRevokedShown: false }, { limit: MAX_KEYS }),
      ]);
      const query = new URLSearchParams({ account: account.name });
      const body = html`${problemsOf(
        [
          ...failingWebhooks({ failing, failingTotal, nowMs }),
          ...partlyFailingWebhooks({ partlyFailing: partly.webhooks, partlyFailingTotal: partly.total }),
          ...expiringKeys({ expiringKeys: expiring }),
        ],
        {
          nowMs,
          checkedAt: new Date(nowMs),
          well: 'Nothing is wrong: no webhook of this account fails, and no key in use expires within three days.',
        },
      )}
<p class="lead">Created ${time(account.createdAt)} UTC.</p>
${facts([
  ['Webhooks', used(usage.webhooks, account.webhooks ?? deps.quotas.webhooks)],
  ['Active alerts', used(usage.alerts, account.alerts ?? deps.quotas.alerts)],
  ['Wallets', used(usage.wallets, account.wallets ?? deps.quotas.wallets)],
  ['Active keys', used(usage.keys, account.keys ?? deps.quotas.keys)],
  ['Archive, megabytes today', used(Math.ceil(archive.used / 1_000_000), archive.limit / 1_000_000)],
  ['Requests per minute', ownOrDefault(account.ratePerMinute)],
  ['Cold reads per minute', ownOrDefault(account.coldReadsPerMinute)],
  ['Deliveries', html`<a href="/ops/deliveries?${new URLSearchParams({ account: account.name }).toString()}">show</a>`],
])}
${limitsForm(request, account, deps.quotas)}
<h2>Keys</h2><p><a href="/ops/keys?${query.toString()}">New key or sign-in link</a></p>${keyTable(request, keys)}
${next && html`<p><a href="/ops/keys?${query.toString()}">All keys of this account</a></p>`}`;
      return { title: account.name, body };
    },
  });

  router.action({
    path: `${PATH}/limits`,
    section: 'keys',
    action: 'account.limits',
    target: ({ params }) => `account ${params['id']}`,
    async inTransaction(tx, { params, form }) {
      const wanted = readLimitsForm(form);
      const account = await findAccount(tx, params);
      await setAccountQuotas(tx, account.name, wanted);
      return { result: `${account.name}: ${changes(account, wanted)}`, to: accountPath(account.id) };
    },
  });
}

async function findAccount(db: Queryable, params: OpsRequest['params']): Promise<OpsAccount> {
  const id = params['id'] ?? '';
  const account = /^\d{1,18}$/.test(id) ? await findOpsAccount(db, BigInt(id)) : null;
  if (!account) throw new ApiError('not_found', 'the account does not exist');
  return account;
}

function used(count: number, limit: number): Html {
  return html`${number(count)}${count >= MAX_COUNTED_OF_ACCOUNT && '+'} <span class="muted">of ${number(limit)}</span>`;
}

function ownOrDefault(limit: number | null): HtmlValue {
  return limit === null ? 'default' : limit === 0 ? 'no limit' : number(limit);
}

function limitsForm(request: OpsRequest, account: OpsAccount, defaults: PageDeps['quotas']): Html {
  if (!request.session.mayAct) return html``;
  const fields = (Object.keys(LIMIT_FIELDS) as (keyof AccountQuotas)[]).map((name) => {
    const own = account[name];
    const byDefault = name in defaults ? ` (${defaults[name as keyof typeof defaults].toLocaleString('en-US')})` : '';
    return field({
      label: LIMIT_FIELDS[name],
      name,
      type: 'number',
      min: 0,
      max: MAX_LIMIT,
      hint: `Leave empty for the default${byDefault}.${name === 'ratePerMinute' ? ' 0 means no limit.' : ''}`,
      ...(own !== null && { value: String(own) }),
    });
  });
  const form = actionForm(
    request,
    `${accountPath(account.id)}/limits`,
    html`${fields}<button type="submit" class="primary">Save</button>`,
  );
  return html`<details class="fold"><summary class="button">Change limits</summary><div class="card">${form}</div></details>`;
}

/** Describes a change of limits. */
function changes(before: AccountQuotas, after: AccountQuotas): string {
  const words = (value: number | null) => (value === null ? 'default' : String(value));
  const changed = (Object.keys(LIMIT_FIELDS) as (keyof AccountQuotas)[])
    .filter((name) => before[name] !== after[name])
    .map((name) => `${LIMIT_FIELDS[name].toLowerCase()} ${words(before[name])} → ${words(after[name])}`);
  return changed.length === 0 ? 'no limit changed.' : `${changed.join(', ')}.`;
}

/** The form of an account's limits. An empty field means the default. @throws ApiError `invalid_request` */
function readLimitsForm(form: URLSearchParams): AccountQuotas {
  const problems: ErrorDetail[] = [];
  const read = (path: keyof AccountQuotas): number | null => {
    const text = (form.get(path) ?? '').trim();
    if (text === '') return null;
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (value <= MAX_LIMIT) return value;
    problems.push({ path, message: `must be a whole number from 0 to ${MAX_LIMIT}, or empty` });
    return null;
  };
  const limits = {
    webhooks: read('webhooks'),
    alerts: read('alerts'),
    wallets: read('wallets'),
    keys: read('keys'),
    ratePerMinute: read('ratePerMinute'),
    coldReadsPerMinute: read('coldReadsPerMinute'),
    archiveMbPerDay: read('archiveMbPerDay'),
  };
  if (problems.length > 0) throw invalidRequest(problems);
  return limits;
}
