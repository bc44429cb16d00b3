import type { ArchiveKind } from '../../../src/domain/archive/kinds.ts';
import { readDueDays } from '../../../src/store/archive/catalog.ts';
import {
  type ArchiveFailure,
  type ArchiveKindState,
  archivedPairs,
  readArchiveState,
} from '../../../src/store/archive/state.ts';
import type { Queryable } from '../../../src/store/db/tx.ts';
import { ago, badge, code, type Html, html, NONE, number, table } from '../kit/html.ts';

/** The configuration of the archive. */
export interface ArchivePlan {
  readonly kinds: readonly ArchiveKind[];
  readonly afterHours: number;
}

/** The state of the archive. */
export interface ArchiveFacts {
  readonly kinds: readonly ArchiveKindState[];
  /** The earliest begin first. */
  readonly failures: readonly ArchiveFailure[];
  /** At most `MAX_DUE` are counted. */
  readonly due: { readonly days: number; readonly first: string | null };
}

const MAX_DUE = 1_000;

/** Null when the archive is off. */
export async function readArchiveFacts(db: Queryable, plan: ArchivePlan | undefined): Promise<ArchiveFacts | null> {
  if (plan === undefined) return null;
  const { kinds, failures } = await readArchiveState(db);
  const pairs = archivedPairs(plan.kinds);
  const due = await readDueDays(db, { pairs, afterHours: plan.afterHours, limit: MAX_DUE });
  return { kinds, failures, due: { days: due.length, first: due[0]?.date ?? null } };
}

/** The subject of a failure: the folder, or a kind of a venue. */
export function failureSubject({ kind, venue, date }: ArchiveFailure): string {
  return kind === '' ? 'the folder' : `${kind} of ${venue}, ${date}`;
}

/** The last archived days, the due ones, and the failures with their cause. */
export function archiveSection({ kinds, failures, due }: ArchiveFacts, nowMs: number): Html {
  const last = kinds.reduce<string | null>(
    (least, each) => (least === null || each.last < least ? each.last : least),
    null,
  );
  const many = due.days >= MAX_DUE ? html`${number(MAX_DUE)} or more` : number(due.days);
  return html`<div class="grid small">
<div class="card"><h3>Last archived day</h3><span class="figure">${last ?? NONE}</span><p class="under muted">of each kind and venue</p></div>
<div class="card"><h3>Days due</h3><span class="figure">${many}</span><p class="under muted">${
    due.first === null ? 'no file is missing' : `the first is ${due.first}`
  }</p></div>
<div class="card"><h3>Failures</h3><span class="figure">${number(failures.length)}</span><p class="under">${
    failures.length === 0 ? badge('good', 'none') : badge('bad', 'failing')
  }</p></div></div>
${table<ArchiveKindState>({
  caption: 'The last archived day of each kind',
  columns: [
    { label: 'Kind', cell: ({ kind }) => kind },
    { label: 'Last day', cell: ({ last: day }) => day },
    { label: 'Venue that is furthest behind', cell: ({ venue }) => venue },
  ],
  rows: kinds,
  empty: 'No day is archived yet.',
})}
${
  failures.length > 0 &&
  table<ArchiveFailure>({
    caption: 'Failures of the archive',
    columns: [
      { label: 'Subject', cell: failureSubject },
      { label: 'Failing since', cell: ({ since }) => ago(since, nowMs) },
      { label: 'Last', cell: ({ at }) => ago(at, nowMs) },
      { label: 'In a row', cell: (failure) => number(failure.failures), isNumeric: true },
      { label: 'Cause', cell: (failure) => html`<code>${failure.code}</code> ${code(failure.message)}` },
    ],
    rows: failures,
    empty: '',
  })
}`;
}
