import { isName, MAX_NAME_LENGTH, SCOPES, type Scope } from '../../../src/domain/values/api-key.ts';
import { DAY_MS } from '../../../src/domain/values/durations.ts';
import { type ApiKeyRequest, createApiKey, revokeApiKey } from '../../../src/store/accounts/accounts.ts';
import { issueSignInLink, LINK_MINUTES, LINK_PATH } from '../../../src/store/accounts/sign-in-links.ts';
import { listOpsAccounts, listOpsKeys, type OpsAccount, type OpsKey } from '../../../src/store/ops/keys.ts';
import { ApiError, type ErrorDetail, invalidRequest } from '../../errors.ts';
import { actionButton, actionForm, checks, field } from '../kit/forms.ts';
import { ago, badge, code, type Html, html, longText, NONE, number, table, time } from '../kit/html.ts';
import { BY_AGE, PAGE_ROWS, pager } from '../kit/lists.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import type { OpsRequest, OpsRouter } from './actions.ts';
import type { Problems } from './problems/read.ts';

const PATH = '/ops/keys';

/** The page of an account. */
export function accountPath(id: bigint): string {
  return `/ops/accounts/${id}`;
}

/** /ops/keys: lists, creates and revokes the API keys of all accounts. A key is shown once and not stored. */
/** Without the console its links are off. */
export type KeysDeps = Pick<PageDeps, 'db' | 'cursors'> & { console?: object };

export function keyPages(router: OpsRouter, deps: KeysDeps & { problems: Pick<Problems, 'head'> }): void {
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
        { limit: PAGE_ROWS, ...(cursor !== null && { after: { createdMicros, id } }) },
      );
      const body = html`${await deps.problems.head(['keys'], request.nowMs, 'Nothing is wrong: no key in use expires within three days.')}
<p class="lead">The API keys of all accounts. <a href="/ops/accounts">Accounts and their limits</a></p>
${createForm(request, account)}
${deps.console && linkForm(request, account)}
${filters(account, isRevokedShown)}
${keyTable(request, keys)}
${pager({ path: PATH, query }, next && deps.cursors.encode(scope, [next.createdMicros, next.id]), BY_AGE)}`;
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
      const made = await createApiKey(tx, wanted);
      return {
        result: `Created key ${made.id}, “${wanted.name}”.`,
        page: {
          title: 'New key',
          body: html`<p class="lead">Account: <a href="${accountPath(made.accountId)}">${wanted.accountName}</a>. Name: “${wanted.name}”.</p>
<div class="card"><h2>Copy the key now. It is shown only once.</h2><code class="secret" tabindex="0">${made.key}</code>
<p class="hint">oddswire stores only a hash of the key. If you lose the key, create another one.</p></div>
<p class="under"><a class="button" href="${PATH}">Done</a></p>`,
        },
      };
    },
  });

  router.action({
    path: `${PATH}/link`,
    section: 'keys',
    action: 'key.link',
    target: ({ form }) => `account ${form.get('account') ?? ''}`,
    async inTransaction(tx, { form, session, origin, nowMs }) {
      if (!deps.console) throw new ApiError('not_found', 'the console is off');
      const { accountName, scopes } = readLinkForm(form);
      const { token, expiresAt } = await issueSignInLink(
        tx,
        { accountName, scopes, issuedBy: session.operator.name },
        nowMs,
      );
      return {
        result: `Created a sign-in link with the scopes ${scopes.join(', ')}.`,
        page: {
          title: 'New sign-in link',
          body: html`<p class="lead">Account: ${accountName}. Scopes: ${scopes.join(', ')}.</p>
<div class="card"><h2>Copy the link now. It is shown only once.</h2><code class="secret" tabindex="0">${origin}${LINK_PATH}/${token}</code>
<p class="hint">It works once, until ${time(expiresAt)} UTC. Everyone who has the link can use it: send it to one person.
When the console has another host than these pages, replace the host.</p></div>
<p class="under"><a class="button" href="${PATH}">Done</a></p>`,
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
      if (!(await revokeApiKey(tx, id))) throw new ApiError('not_found', 'no key has this id');
      return { result: `Revoked key ${id}. All processes reject it within a second.`, to: PATH };
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
        PAGE_ROWS,
        after === undefined ? undefined : BigInt(after),
      );
      const body = html`<p class="lead">Keys, webhooks, alerts, wallets and limits belong to an account. The first <a href="${PATH}">key</a> creates the account.</p>
${accountTable(accounts)}
${pager({ path: '/ops/accounts', query }, next === undefined ? undefined : deps.cursors.encode('/ops/accounts', [String(next)]), BY_AGE)}`;
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
      {
        label: 'Account',
        cell: ({ account, accountId }) => html`<a class="long" href="${accountPath(accountId)}">${account}</a>`,
      },
      { label: 'Scopes', cell: ({ scopes }) => scopesOf(scopes) },
      { label: 'State', cell: (key) => keyState(key, nowMs) },
      { label: 'Last used', cell: ({ lastUsedAt }) => ago(lastUsedAt, nowMs) },
      {
        label: 'Created',
        cell: ({ createdAt, expiresAt }) =>
          html`${ago(createdAt, nowMs)} <span class="under-cell muted">${
            expiresAt === null ? 'no expiry' : html`expires ${ago(expiresAt, nowMs)}`
          }</span>`,
      },
      {
        label: 'Action',
        cell: ({ id, name, account, revokedAt }) =>
          revokedAt === null &&
          actionButton(request, {
            action: `${PATH}/${encodeURIComponent(id)}/revoke`,
            label: 'Revoke',
            of: `key ${id}`,
            isDangerous: true,
            confirm: `The API will reject all requests with the key “${name}” of ${account}. This cannot be undone.`,
          }),
      },
    ],
    rows: keys,
    empty: 'No key matches these filters.',
  });
}

function scopesOf(scopes: readonly string[]): Html {
  const isEvery = SCOPES.every((scope) => scopes.includes(scope));
  return isEvery ? html`all` : html`<span class="long">${scopes.join(', ')}</span>`;
}

function keyState({ revokedAt, expiresAt }: OpsKey, nowMs: number): Html {
  if (revokedAt !== null) return html`${badge('idle', 'revoked')} <span class="muted">${ago(revokedAt, nowMs)}</span>`;
  if (expiresAt !== null && expiresAt.getTime() <= nowMs) return badge('idle', 'expired');
  return badge('good', 'active');
}

function createForm(request: OpsRequest, account: string | undefined): Html {
  const form = actionForm(
    request,
    PATH,
    html`${field({ label: 'Account', name: 'account', isRequired: true, hint: 'Created if the name is new.', ...(account !== undefined && { value: account }) })}
${field({ label: 'Name of the key', name: 'name', isRequired: true, hint: 'For example the program that uses the key.' })}
${scopeChecks()}
${field({ label: 'Expires', name: 'expires', type: 'date', hint: 'End of this day, UTC. Leave empty for no expiry.' })}
<button type="submit" class="primary">Create key</button>`,
  );
  if (!request.session.mayAct) return html``;
  return html`<details class="fold"><summary class="button">New key</summary><div class="card">${form}</div></details>`;
}

function scopeChecks(form?: string): Html {
  const options = SCOPES.map((scope) => [scope, scope] as const);
  return checks({ label: 'Scopes', name: 'scopes', values: SCOPES, options, ...(form !== undefined && { form }) });
}

function linkForm(request: OpsRequest, account: string | undefined): Html {
  if (!request.session.mayAct) return html``;
  const form = actionForm(
    request,
    `${PATH}/link`,
    html`<p class="hint">The link signs one person in to the console, once, within ${LINK_MINUTES} minutes. Its session
lasts 12 hours and has these scopes. With <code>keys</code> the person can create keys.</p>
${field({ label: 'Account of the person', name: 'account', form: 'link', isRequired: true, hint: 'Created if the name is new.', ...(account !== undefined && { value: account }) })}
${scopeChecks('link')}
<button type="submit" class="primary">Create link</button>`,
  );
  return html`<details class="fold"><summary class="button">New sign-in link</summary><div class="card">${form}</div></details>`;
}

function filters(account: string | undefined, isRevokedShown: boolean): Html {
  return html`<form method="get" action="${PATH}" class="filters">
<div class="field"><label for="filter-account">Account</label><input id="filter-account" name="account" type="search" autocomplete="off" value="${account ?? ''}"></div>
<label class="check"><input type="checkbox" name="revoked" value="1"${isRevokedShown && html` checked`}>Show revoked keys</label>
<button type="submit">Show</button></form>`;
}

function accountTable(accounts: readonly OpsAccount[]): Html {
  const limit = (value: number | null) => (value === null ? html`<span class="muted">default</span>` : number(value));
  return table<OpsAccount>({
    caption: 'Accounts, oldest first',
    columns: [
      { label: 'Account', cell: ({ id, name }) => html`<a class="long" href="${accountPath(id)}">${name}</a>` },
      { label: 'Created', cell: ({ createdAt }) => time(createdAt) },
      { label: 'Active keys', cell: ({ liveKeys }) => (liveKeys === 0 ? NONE : number(liveKeys)), isNumeric: true },
      { label: 'Webhooks', cell: ({ webhooks }) => limit(webhooks), isNumeric: true },
      { label: 'Alerts', cell: ({ alerts }) => limit(alerts), isNumeric: true },
      { label: 'Wallets', cell: ({ wallets }) => limit(wallets), isNumeric: true },
      { label: 'Requests / min', cell: ({ ratePerMinute }) => limit(ratePerMinute), isNumeric: true },
      { label: 'Cold reads / min', cell: ({ coldReadsPerMinute }) => limit(coldReadsPerMinute), isNumeric: true },
    ],
    rows: accounts,
    empty: 'No account exists yet. The first key creates one.',
  });
}

/** The form of a new key. @throws ApiError `invalid_request` that lists all faults. */
function readKeyForm(form: URLSearchParams, nowMs: number): ApiKeyRequest {
  const problems: ErrorDetail[] = [];
  const accountName = readName(form, 'account', problems);
  const name = readName(form, 'name', problems);
  const scopes = readScopes(form, problems);
  const expiresAt = readDay(form, nowMs, problems);
  if (problems.length > 0) throw invalidRequest(problems);
  return { accountName, name, scopes, ...(expiresAt && { expiresAt }) };
}

/** The form of a sign-in link. @throws ApiError `invalid_request` that lists all faults. */
function readLinkForm(form: URLSearchParams): Pick<ApiKeyRequest, 'accountName' | 'scopes'> {
  const problems: ErrorDetail[] = [];
  const accountName = readName(form, 'account', problems);
  const scopes = readScopes(form, problems);
  if (problems.length > 0) throw invalidRequest(problems);
  return { accountName, scopes };
}

function readScopes(form: URLSearchParams, problems: ErrorDetail[]): Scope[] {
  const selected = form.getAll('scopes');
  const scopes = SCOPES.filter((scope) => selected.includes(scope));
  if (scopes.length === 0) problems.push({ path: 'scopes', message: 'choose at least one scope' });
  return scopes;
}

function readName(form: URLSearchParams, path: string, problems: ErrorDetail[]): string {
  const text = (form.get(path) ?? '').trim();
  if (text === '') problems.push({ path, message: 'must not be empty' });
  else if (!isName(text)) {
    problems.push({
      path,
      message: `must have at most ${MAX_NAME_LENGTH} characters and no control characters`,
    });
  }
  return text;
}

/** The end of the day, UTC. */
function readDay(form: URLSearchParams, nowMs: number, problems: ErrorDetail[]): Date | undefined {
  const text = (form.get('expires') ?? '').trim();
  if (text === '') return undefined;
  const startMs = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  const isDay = !Number.isNaN(startMs) && new Date(startMs).toISOString().startsWith(text);
  const end = new Date(startMs + DAY_MS);
  if (!isDay) problems.push({ path: 'expires', message: 'must be a day such as 2027-01-31' });
  else if (end.getTime() <= nowMs) problems.push({ path: 'expires', message: 'must not be in the past' });
  return end;
}
