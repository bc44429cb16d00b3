import { SCOPES } from '../../../src/domain/values/api-key.ts';
import { insertApiKey, revokeApiKey } from '../../../src/store/accounts/accounts.ts';
import { listOpsAccounts, listOpsKeys, type OpsAccount, type OpsKey } from '../../../src/store/ops/keys.ts';
import type { ApiDeps } from '../../deps.ts';
import { ApiError } from '../../errors.ts';
import { actionButton, actionForm, field } from '../forms.ts';
import { ago, badge, code, type Html, html, longText, NONE, number, pager, table, time } from '../html.ts';
import type { OpsRequest, OpsRouter } from '../ops-route.ts';
import { readKeyForm } from './keys-form.ts';

const PATH = '/ops/keys';
const KEYS_PER_PAGE = 50;
const ACCOUNTS_PER_PAGE = 50;

/** The page of an account. */
export function accountPath(id: bigint): string {
  return `/ops/accounts/${id}`;
}

/** API keys of every account: look, make, revoke. The keys themselves are shown once and kept nowhere. */
export function keyPages(router: OpsRouter, deps: Pick<ApiDeps, 'db' | 'cursors'>): void {
  router.page({
    path: PATH,
    section: 'keys',
    async load(request) {
      const { query } = request;
      const account = query.get('account')?.trim() || undefined;
      const isRevokedShown = query.get('revoked') === '1';
      const scope = JSON.stringify([PATH, account, isRevokedShown]);
      const cursor = query.get('cursor');
      const [createdMicros = '', id = ''] = cursor === null ? [] : deps.cursors.decode(scope, cursor);
      const { keys, next } = await listOpsKeys(
        deps.db,
        { isRevokedShown, ...(account !== undefined && { account }) },
        { limit: KEYS_PER_PAGE, ...(cursor !== null && { after: { createdMicros, id } }) },
      );
      const body = html`<p class="lead">Who may call the API, and with what. <a href="/ops/accounts">Accounts and their limits</a></p>
${createForm(request, account)}
${filters(account, isRevokedShown)}
${keyTable(request, keys)}
${pager(PATH, query, next && deps.cursors.encode(scope, [next.createdMicros, next.id]))}`;
      return { title: 'API keys', body };
    },
  });

  router.action({
    path: PATH,
    section: 'keys',
    action: 'key.create',
    target: ({ form }) => `account ${form.get('account') ?? ''}`,
    async inTransaction(tx, { form, nowMs }) {
      const wanted = readKeyForm(form, nowMs);
      const made = await insertApiKey(tx, wanted);
      return {
        result: `Made key ${made.id}, “${wanted.name}”.`,
        page: {
          title: 'A new key',
          body: html`<p class="lead">For <a href="${accountPath(made.accountId)}">${wanted.accountName}</a>, named “${wanted.name}”.</p>
<div class="card"><h3>Copy it now: it is not shown again</h3><code class="secret" tabindex="0">${made.key}</code>
<p class="hint">Only a hash of it is kept. Whoever lost it needs another one.</p></div>
<p class="under"><a class="button" href="${PATH}">I have it</a></p>`,
        },
      };
    },
  });

  router.action({
    path: `${PATH}/:id/revoke`,
    section: 'keys',
    action: 'key.revoke',
    target: ({ params }) => `key ${params['id']}`,
    async inTransaction(tx, { params }) {
      const id = params['id'] ?? '';
      if (!(await revokeApiKey(tx, id))) throw new ApiError('not_found', 'there is no key of this id');
      return { result: `Revoked key ${id}: no request with it is answered any more within a second.`, to: PATH };
    },
  });

  router.page({
    path: '/ops/accounts',
    section: 'keys',
    async load({ query }) {
      const cursor = query.get('cursor');
      const [after] = cursor === null ? [] : deps.cursors.decode('/ops/accounts', cursor);
      const { accounts, next } = await listOpsAccounts(
        deps.db,
        ACCOUNTS_PER_PAGE,
        after === undefined ? undefined : BigInt(after),
      );
      const body = html`<p class="lead">Keys, webhooks, alerts and wallets belong to an account; so do limits. An account is made with its first <a href="${PATH}">key</a>.</p>
${accountTable(accounts)}
${pager('/ops/accounts', query, next === undefined ? undefined : deps.cursors.encode('/ops/accounts', [String(next)]))}`;
      return { title: 'Accounts', body };
    },
  });
}

/** The keys of one account or of all. */
export function keyTable(request: OpsRequest, keys: readonly OpsKey[]): Html {
  const { nowMs } = request;
  return table<OpsKey>({
    caption: 'API keys, newest first',
    columns: [
      { label: 'Name', cell: ({ name }) => longText(name) },
      { label: 'Id', cell: ({ id }) => code(id) },
      { label: 'Account', cell: ({ account, accountId }) => html`<a href="${accountPath(accountId)}">${account}</a>` },
      { label: 'Scopes', cell: ({ scopes }) => scopesOf(scopes) },
      { label: 'State', cell: (key) => keyState(key, nowMs) },
      { label: 'Last used', cell: ({ lastUsedAt }) => ago(lastUsedAt, nowMs) },
      { label: 'Created', cell: ({ createdAt }) => ago(createdAt, nowMs) },
      { label: 'Expires', cell: ({ expiresAt }) => (expiresAt === null ? 'never' : ago(expiresAt, nowMs)) },
      {
        label: 'Action',
        cell: ({ id, name, account, revokedAt }) =>
          revokedAt === null &&
          actionButton(request, {
            action: `${PATH}/${encodeURIComponent(id)}/revoke`,
            label: 'Revoke',
            of: `key ${id}`,
            isDangerous: true,
            confirm: `Nothing that uses “${name}” of ${account} will be answered any more. This cannot be undone.`,
          }),
      },
    ],
    rows: keys,
    empty: 'No key is like that.',
  });
}

function scopesOf(scopes: readonly string[]): Html {
  const isEvery = SCOPES.every((scope) => scopes.includes(scope));
  return isEvery ? html`every` : html`<span class="long">${scopes.join(', ')}</span>`;
}

function keyState({ revokedAt, expiresAt }: OpsKey, nowMs: number): Html {
  if (revokedAt !== null) return html`${badge('idle', 'revoked')} <span class="muted">${ago(revokedAt, nowMs)}</span>`;
  if (expiresAt !== null && expiresAt.getTime() <= nowMs) return badge('idle', 'expired');
  return badge('good', 'live');
}

function createForm(request: OpsRequest, account: string | undefined): Html {
  const form = actionForm(
    request,
    PATH,
    html`${field({ label: 'Account', name: 'account', isRequired: true, hint: 'Made if there is none of this name.', ...(account !== undefined && { value: account }) })}
${field({ label: 'Name of the key', name: 'name', isRequired: true, hint: 'Who or what will use it.' })}
<fieldset><legend>Scopes</legend>${SCOPES.map(
      (scope) =>
        html`<label class="check"><input type="checkbox" name="scopes" value="${scope}" checked>${scope}</label>`,
    )}</fieldset>
${field({ label: 'Expires', name: 'expires', type: 'date', hint: 'At the end of this day, UTC. Empty: never.' })}
<button type="submit" class="primary">Make the key</button>`,
  );
  if (request.operator.role !== 'operator') return html``;
  return html`<details class="fold"><summary class="button">New key</summary><div class="card">${form}</div></details>`;
}

function filters(account: string | undefined, isRevokedShown: boolean): Html {
  return html`<form method="get" action="${PATH}" class="filters">
<div class="field"><label for="filter-account">Account</label><input id="filter-account" name="account" type="search" autocomplete="off" value="${account ?? ''}"></div>
<label class="check"><input type="checkbox" name="revoked" value="1"${isRevokedShown && html` checked`}>Revoked ones too</label>
<button type="submit">Show</button></form>`;
}

function accountTable(accounts: readonly OpsAccount[]): Html {
  const limit = (value: number | null) => (value === null ? html`<span class="muted">default</span>` : number(value));
  return table<OpsAccount>({
    caption: 'Accounts, oldest first',
    columns: [
      { label: 'Account', cell: ({ id, name }) => html`<a class="long" href="${accountPath(id)}">${name}</a>` },
      { label: 'Since', cell: ({ createdAt }) => time(createdAt) },
      { label: 'Live keys', cell: ({ liveKeys }) => (liveKeys === 0 ? NONE : number(liveKeys)), isNumeric: true },
      { label: 'Webhooks', cell: ({ webhooks }) => limit(webhooks), isNumeric: true },
      { label: 'Alerts', cell: ({ alerts }) => limit(alerts), isNumeric: true },
      { label: 'Wallets', cell: ({ wallets }) => limit(wallets), isNumeric: true },
      { label: 'Requests / min', cell: ({ ratePerMinute }) => limit(ratePerMinute), isNumeric: true },
      { label: 'Cold reads / min', cell: ({ coldReadsPerMinute }) => limit(coldReadsPerMinute), isNumeric: true },
    ],
    rows: accounts,
    empty: 'No account yet: the first key makes one.',
  });
}
