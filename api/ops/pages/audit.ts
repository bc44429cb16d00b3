import { type AuditRow, type AuditStatus, listActions } from '../../../src/store/ops/actions.ts';
import { type ListedSession, listSessions } from '../../../src/store/ops/sessions.ts';
import type { ApiDeps } from '../../deps.ts';
import { actionButton } from '../forms.ts';
import { ago, badge, code, type Html, html, longText, NONE, pager, type Tone, table, time } from '../html.ts';
import { sessionIdOf } from '../operator.ts';
import type { OpsRequest, OpsRouter } from '../ops-route.ts';

const PATH = '/ops/audit';
const PAGE_SIZE = 30;
const MAX_SESSIONS = 50;
const TONES: Readonly<Record<AuditStatus, Tone>> = {
  done: 'good',
  refused: 'warn',
  failed: 'bad',
  started: 'idle',
};

/** /ops/audit: the actions of operators, newest first, and the open sessions. */
export function auditPages(router: OpsRouter, deps: Pick<ApiDeps, 'db' | 'cursors'>): void {
  router.page({
    path: PATH,
    section: 'audit',
    async load(request) {
      const { query, nowMs } = request;
      const cursor = query.get('cursor');
      const [after] = cursor === null ? [] : deps.cursors.decode(PATH, cursor);
      const [{ actions, next }, sessions] = await Promise.all([
        listActions(deps.db, PAGE_SIZE, after === undefined ? undefined : BigInt(after)),
        cursor === null ? listSessions(deps.db, MAX_SESSIONS, nowMs) : null,
      ]);
      const body = html`<p class="lead">All changes through these pages, by commands and by the keys of accounts, and all login attempts. Creations and deletions of
alerts are in the log only. <code>oddswire audit-trail</code> exports all rows.</p>
${actionTable(actions)}
${pager(PATH, query, next === undefined ? undefined : deps.cursors.encode(PATH, [String(next)]))}
${sessions && sessionList(request, sessions)}`;
      return { title: 'Audit log', body };
    },
  });
}

function actionTable(actions: readonly AuditRow[]): Html {
  return table<AuditRow>({
    caption: 'Actions, newest first',
    columns: [
      { label: 'Time (UTC)', cell: ({ at }) => time(at) },
      { label: 'By', cell: actorCell },
      { label: 'Action', cell: ({ action }) => code(action) },
      { label: 'Target', cell: ({ target }) => longText(target) },
      { label: 'State', cell: ({ status }) => badge(TONES[status], status) },
      { label: 'Result', cell: ({ result }) => longText(result) },
      { label: 'Request', cell: ({ requestId }) => html`<code class="long">${requestId}</code>` },
    ],
    rows: actions,
    empty: 'The audit log is empty.',
  });
}

function actorCell({ source, account, actor, role, sessionId, address }: AuditRow): Html {
  const isOfPages = source === 'pages';
  const who = isOfPages ? (actor ?? role ?? NONE) : (account ?? source);
  const detail = sessionId ?? (isOfPages ? null : actor);
  return html`${who} <span class="muted">${isOfPages && actor !== null && role} ${detail !== null && html`<code>${detail}</code> `}${address}</span>`;
}

function sessionList(request: OpsRequest, sessions: readonly ListedSession[]): Html {
  const { nowMs, operator } = request;
  const name = ({ tokenHash }: ListedSession) => sessionIdOf(tokenHash);
  return html`<h2>Open sessions</h2>
${table<ListedSession>({
  caption: 'Open sessions, most recently used first',
  columns: [
    {
      label: 'Session',
      cell: (session) =>
        html`${code(name(session))}${name(session) === operator.sessionId && html` <span class="muted">this session</span>`}`,
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
