import { type ListedSession, operatorSessions } from '../../../src/store/accounts/sessions.ts';
import {
  ACTION_SOURCES,
  type ActionFilter,
  AUDIT_STATUSES,
  type AuditRow,
  type AuditStatus,
  listActions,
} from '../../../src/store/ops/actions.ts';
import { anyOf, chosen, textField } from '../kit/filters.ts';
import { actionButton, choice, field, filterForm } from '../kit/forms.ts';
import { ago, badge, code, type Html, html, longText, NONE, type Tone, table, time } from '../kit/html.ts';
import { BY_AGE, pager } from '../kit/lists.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { shortId } from '../kit/shown-values.ts';
import { sessionIdOf } from './access/session.ts';
import type { OpsRequest, OpsRouter } from './actions.ts';
import { linkedIds } from './links.ts';
import type { Problems } from './problems/read.ts';

const PATH = '/ops/audit';
const AUDIT_ROWS = 30;
const MAX_SESSIONS = 50;
const TONES: Readonly<Record<AuditStatus, Tone>> = {
  done: 'good',
  refused: 'warn',
  failed: 'bad',
  started: 'idle',
};

/** /ops/audit: the actions of operators, newest first, and the open sessions. */
export function auditPages(
  router: OpsRouter,
  deps: Pick<PageDeps, 'db' | 'cursors'> & { problems: Pick<Problems, 'head'> },
): void {
  router.page({
    path: PATH,
    section: 'audit',
    async load(request) {
      const { query, nowMs } = request;
      const cursor = query.get('cursor');
      const filter = readFilter(query);
      const scope = JSON.stringify([PATH, filter]);
      const [after] = cursor === null ? [] : deps.cursors.decode(scope, cursor);
      const [{ actions, next, searchedSince }, sessions] = await Promise.all([
        listActions(deps.db, AUDIT_ROWS, after === undefined ? undefined : BigInt(after), filter),
        cursor === null && Object.keys(filter).length === 0
          ? operatorSessions.list(deps.db, MAX_SESSIONS, nowMs)
          : null,
      ]);
      const body = html`${await deps.problems.head(['audit'], request.nowMs, 'Nothing is wrong: every action of the last day has its end.')}
<p class="lead">All changes through these pages, by commands and by the keys of accounts, and all login attempts. Creations and deletions of
alerts are in the log only. <code>oddswire audit-trail</code> exports all rows.</p>
${filters(filter)}
${actionTable(actions)}
${searchedSince !== undefined && html`<p class="hint">The search covers actions since ${time(searchedSince)} UTC. Older pages may hold more.</p>`}
${pager({ path: PATH, query }, next === undefined ? undefined : deps.cursors.encode(scope, [String(next)]), BY_AGE)}
${sessions && sessionList(request, sessions)}`;
      return { title: 'Audit log', body };
    },
  });
}

function readFilter(query: URLSearchParams): ActionFilter {
  const source = chosen(query, 'source', ACTION_SOURCES);
  const status = chosen(query, 'status', AUDIT_STATUSES);
  const by = textField(query, 'by');
  const action = textField(query, 'action');
  const target = textField(query, 'target');
  return {
    ...(source !== undefined && { source }),
    ...(status !== undefined && { status }),
    ...(by !== undefined && { by }),
    ...(action !== undefined && { action }),
    ...(target !== undefined && { target }),
  };
}

function filters({ source, status, by = '', action = '', target = '' }: ActionFilter): Html {
  return filterForm(
    PATH,
    html`${field({ label: 'By', name: 'by', value: by, hint: 'operator, account or key' })}
${field({ label: 'Action', name: 'action', value: action, hint: 'for example key or key.revoke' })}
${field({ label: 'Target', name: 'target', value: target, hint: 'a part of it' })}
${choice({ label: 'Source', name: 'source', value: source ?? '', options: anyOf(ACTION_SOURCES) })}
${choice({ label: 'State', name: 'status', value: status ?? '', options: anyOf(AUDIT_STATUSES) })}`,
  );
}

function actionTable(actions: readonly AuditRow[]): Html {
  return table<AuditRow>({
    caption: 'Actions, newest first',
    columns: [
      { label: 'Time (UTC)', cell: ({ at }) => time(at) },
      { label: 'By', cell: actorCell },
      { label: 'Action', cell: ({ action }) => code(action) },
      { label: 'Target', cell: ({ target }) => html`<span class="long">${linkedIds(target)}</span>` },
      { label: 'State', cell: ({ status }) => badge(TONES[status], status) },
      { label: 'Result', cell: ({ result }) => longText(result) },
      { label: 'Request', cell: ({ requestId }) => shortId(requestId) },
    ],
    rows: actions,
    empty: 'The audit log is empty.',
  });
}

/** The name of the actor first: an operator, an account with the name of its key, or the user of a command. */
function actorCell({ source, account, actor, keyName, role, sessionId, address }: AuditRow): Html {
  const isOfPages = source === 'pages';
  const who = isOfPages ? (actor ?? role ?? NONE) : (account ?? actor ?? source);
  const key = source === 'api' && html`key ${keyName ?? 'deleted'} ${actor !== null && code(actor)}`;
  return html`${longText(typeof who === 'string' ? who : null)}<span class="under-cell muted">${isOfPages ? (role ?? '') : key || source} ${
    sessionId !== null && html`<span title="session ${sessionId}">session</span> `
  }${address}</span>`;
}

function sessionList(request: OpsRequest, sessions: readonly ListedSession[]): Html {
  const { nowMs, session: own } = request;
  const name = ({ tokenHash }: ListedSession) => sessionIdOf(tokenHash);
  return html`<h2>Open sessions</h2>
${table<ListedSession>({
  caption: 'Open sessions, most recently used first',
  columns: [
    {
      label: 'Session',
      cell: (session) =>
        html`${code(name(session))}${name(session) === own.operator.sessionId && html` <span class="muted">this session</span>`}`,
    },
    { label: 'Operator', cell: ({ actor, role }) => actor ?? role },
    { label: 'Role at login', cell: ({ role }) => role },
    { label: 'From', cell: ({ address }) => address },
    { label: 'Began', cell: ({ createdAt }) => ago(createdAt, nowMs) },
    { label: 'Last used', cell: ({ lastSeenAt }) => ago(lastSeenAt, nowMs) },
  ],
  rows: sessions,
  empty: 'No session is open.',
})}
${actionButton(request, {
  action: '/ops/logout-everywhere',
  label: 'End all sessions',
  isDangerous: true,
  confirm: 'This logs out all viewers and operators, including you. They can log in again with their password.',
})}`;
}
