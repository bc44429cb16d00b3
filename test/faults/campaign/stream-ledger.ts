import {
  CHANNELS_OF_KIND,
  type Change,
  CONFLATED_KINDS,
  changeData,
  TYPE_OF_KIND,
} from '../../../src/domain/live/change.ts';
import { toJsonText } from '../../../src/domain/values/api-json.ts';
import { type Database, sql } from '../../../src/store/db/tx.ts';
import { readChanges, readJournalHead } from '../../../src/store/journal/read-journal.ts';
import { publishPending } from '../../support/journal.ts';
import type { Logged, Received, StreamReader } from './stream-clients.ts';

const PAGE = 5_000;

/** All stored changes up to a number. */
export async function readLedger(db: Database, upTo: number): Promise<Change[]> {
  const ledger: Change[] = [];
  const { oldestSeq } = await readJournalHead(db);
  for (let after = oldestSeq - 1; after < upTo; ) {
    const page = await readChanges(db, { after, upTo, limit: PAGE });
    if (page.length === 0) break;
    ledger.push(...page);
    after = page.at(-1)?.seq ?? upTo;
  }
  return ledger;
}

/** Numbers that are absent between the first and the last change. */
export function holes(ledger: readonly Change[]): number[] {
  const first = ledger[0]?.seq ?? 0;
  return ledger.filter(({ seq }, index) => seq !== first + index).map(({ seq }) => seq);
}

/**
 * Differences between the log of a reader and the journal up to a number: changes that it did not get although no gap names them, and
 * messages that are not in the journal.
 */
export function differences(reader: StreamReader, ledger: readonly Change[], upTo: number): string[] {
  const { log, filter, from = 0 } = reader;
  const found: string[] = [];
  const messages = new Map<number, Logged>();
  const gaps: { from: number; to: number }[] = [];
  for (const message of log) {
    if (isGap(message)) gaps.push({ from: Number(message.data['from']), to: Number(message.data['to']) });
    else if (message.type !== 'lagged' && message.seq <= upTo) messages.set(message.seq, message);
  }
  /** Unseen states by their subject: a later state of the same subject counts those that its own connection replaced. */
  const replaced = new Map<string, number[]>();
  for (const change of ledger) {
    if (change.seq <= from || !isWanted(filter, change)) continue;
    const message = messages.get(change.seq);
    const key = keyOf(change);
    if (message === undefined) {
      if (gaps.some((gap) => gap.from <= change.seq && change.seq <= gap.to)) continue;
      if (CONFLATED_KINDS.has(change.kind)) replaced.set(key, [...(replaced.get(key) ?? []), change.seq]);
      else found.push(`${change.kind} ${change.seq} is missing`);
      continue;
    }
    messages.delete(change.seq);
    const { conflated = 0, resumedAt } = message;
    const unseen = (replaced.get(key) ?? []).filter((seq) => seq > resumedAt);
    if (conflated !== unseen.length)
      found.push(`${change.kind} ${change.seq} replaces ${unseen} after ${resumedAt}, but says ${conflated}`);
    replaced.delete(key);
    if (!isSame(message, change)) found.push(`${JSON.stringify(message)} differs from ${JSON.stringify(change)}`);
  }
  for (const [key, unseen] of replaced) found.push(`${unseen} are missing: ${key}`);
  for (const message of messages.values())
    found.push(`${JSON.stringify(message)} is not in the journal, or not asked for`);
  return found;
}

/** A gap of the journal, in contrast to a change of the journal that is sent as a gap. */
function isGap({ type, data }: Received): boolean {
  return type === 'gap' && (data['reason'] === 'expired' || data['reason'] === 'epoch');
}

function isWanted({ channels, marketIds }: StreamReader['filter'], { kind, venue, marketId, body }: Change): boolean {
  const ofKind: readonly string[] = kind === 'history' ? [String(body['series'])] : CHANNELS_OF_KIND[kind];
  if (venue !== 'polymarket' || !ofKind.some((channel) => channels.includes(channel))) return false;
  return marketId === '' || marketIds === undefined || marketIds.includes(marketId);
}

function keyOf({ kind, marketId, outcomeId = '', body }: Change): string {
  return [kind, marketId, outcomeId, kind === 'candle' ? String(body['timestamp']) : ''].join(' ');
}

function isSame(message: Received, change: Change): boolean {
  return (
    change.kind !== 'facts' &&
    message.type === TYPE_OF_KIND[change.kind] &&
    message.market_id === change.marketId &&
    message.outcome_id === change.outcomeId &&
    JSON.stringify(message.data) === JSON.stringify(dataOf(change))
  );
}

function dataOf(change: Change): unknown {
  const { kind, body } = change;
  if (kind === 'history') return { reason: 'backfill', series: body['series'], start: body['start'], end: body['end'] };
  return JSON.parse(toJsonText(changeData(change), 'number'));
}

/** Trades without a change of their own and outside every published range of older trades of their market. */
const UNPUBLISHED = sql(
  'test_unpublished_trades',
  `SELECT t.trade_id, t.ts, m.venue_market_id FROM trade t JOIN outcome o USING (token_id) JOIN token k ON k.id = t.token_id
   JOIN market m ON m.id = o.market_id
   WHERE NOT EXISTS (SELECT FROM journal j WHERE j.kind = 'trade' AND j.outcome_id = k.mint AND j.body ->> 'trade_id' = t.trade_id)
     AND NOT EXISTS (SELECT FROM journal j WHERE j.kind = 'history' AND j.market_id = m.venue_market_id AND j.body ->> 'series' = 'trades'
       AND (j.body ->> 'start')::bigint <= extract(epoch FROM t.ts) AND (j.body ->> 'end')::bigint > extract(epoch FROM t.ts))
   LIMIT 10`,
);
const PUBLISHED_TWICE = sql(
  'test_twice_published_trades',
  `SELECT body ->> 'trade_id' AS trade_id FROM journal WHERE kind = 'trade' GROUP BY outcome_id, body ->> 'trade_id' HAVING count(*) > 1`,
);
const WRONG_QUOTES = sql(
  'test_wrong_quotes',
  `SELECT k.mint, l.price::text, j.body ->> 'price' AS published FROM latest_price l JOIN token k ON k.id = l.token_id
   JOIN LATERAL (SELECT body FROM journal j WHERE j.kind = 'price' AND j.outcome_id = k.mint ORDER BY seq DESC LIMIT 1) j ON true
   WHERE l.price::text IS DISTINCT FROM j.body ->> 'price'`,
);

/** Publishes the last marks and compares the whole journal with the stored facts. No process may run. */
export async function wrongFacts(db: Database): Promise<Record<string, readonly unknown[]>> {
  await publishPending(db);
  return {
    unpublished: await db.query(UNPUBLISHED),
    twice: await db.query(PUBLISHED_TWICE),
    quotes: await db.query(WRONG_QUOTES),
  };
}
