import {
  ALERT_CONDITIONS,
  type AlertCondition,
  BOOK_CONDITION_NAMES,
  type Condition,
} from '../../domain/alerts/conditions.ts';
import { alertExpiredBody } from '../../domain/alerts/rule-event.ts';
import { derivedId } from '../../domain/values/ids.ts';
import { type Database, type Queryable, sql } from '../db/tx.ts';
import { EVALUATED_MOMENT } from '../marks/detail.ts';
import { IS_BEHIND } from './books/alert-books.ts';
import { emitEvents } from './events.ts';
import { activeAlerts, finalSince, firstMoment, OF_TOKENS } from './rules.ts';

/** Longer than a transaction holds an observation or a change that it has stamped: these may still fire the alert. */
const GRACE = `interval '15 seconds'`;
const BATCH = 1_000;

/**
 * SQL of the moment before which every observation and every change of a market has been evaluated, at a moment. The marks of a stage are
 * few, except in a backlog.
 */
export const pendingSince = (now: string) => `least(${now} - ${GRACE},
       (SELECT min(${EVALUATED_MOMENT}) FROM mark WHERE stage = 'evaluate-alerts'))`;

const OF_BOOKS = `(${BOOK_CONDITION_NAMES.map((name) => `'${name}'`).join(', ')})`;

/** Whether the books of alert \`a\` until its end are judged. They have cursors in place of marks. */
const IS_JUDGED = `a.former_orders IS NULL AND NOT EXISTS (
     SELECT FROM alert_book b JOIN book_latest l USING (token_id)
     WHERE b.alert_pk = a.pk AND b.judged_until < a.expires_at AND ${IS_BEHIND})`;

/**
 * Alerts past their end, when no observation and no change of a market before the end waits for its evaluation. A paused alert is
 * evaluated for the time before its pause only. Also drops the former conditions of alerts whose observations have been evaluated.
 */
const EXPIRE_DUE = sql(
  'expire_due_alerts',
  `WITH pending AS MATERIALIZED (SELECT ${pendingSince('clock_timestamp()')} AS until),
   due AS MATERIALIZED (
     SELECT pk FROM alert a WHERE status IN ('active', 'paused') AND expires_at <= (SELECT until FROM pending)
       AND CASE WHEN a.probe IN ${OF_BOOKS} THEN ${IS_JUDGED} ELSE is_armed OR status = 'paused' AND former IS NULL END
     ORDER BY expires_at LIMIT ${BATCH}),
   locked AS MATERIALIZED (
     SELECT pk FROM alert WHERE pk IN (SELECT pk FROM due) AND status IN ('active', 'paused') ORDER BY pk FOR UPDATE),
   expired AS (
     UPDATE alert SET status = 'expired', expired_at = now() WHERE pk IN (SELECT pk FROM locked)
     RETURNING pk, id, account_id, token_id, condition, name, expires_at, webhook_pk),
   released AS (DELETE FROM alert_book WHERE alert_pk IN (SELECT pk FROM locked)),
   evaluated AS (
     UPDATE alert SET former = NULL WHERE pk IN (
       SELECT pk FROM alert WHERE former IS NOT NULL AND is_armed AND pk NOT IN (SELECT pk FROM locked)
         AND (former -> -1 ->> 'untilMs')::bigint <= (SELECT extract(epoch FROM until) * 1000 FROM pending)
       ORDER BY pk LIMIT ${BATCH} FOR UPDATE SKIP LOCKED))
   SELECT e.id, e.account_id, e.condition, e.name, e.expires_at, t.mint AS token_mint, w.pk AS webhook_pk
   FROM expired e LEFT JOIN token t ON t.id = e.token_id
   LEFT JOIN webhook_subscription w ON w.pk = e.webhook_pk AND w.deleted_at IS NULL`,
);

interface ExpiredRow {
  id: string;
  accountId: bigint;
  condition: Condition;
  name: string | null;
  expiresAt: Date;
  tokenMint: string | null;
  webhookPk: bigint | null;
}

interface Expired {
  /** Public ids. */
  alerts: string[];
  /** Subscriptions that got deliveries, for the wake-ups. */
  subscriptionPks: bigint[];
}

/** Expires alerts whose `expiresAt` has passed, at most a thousand, and emits an event for each. Safe to run concurrently. */
export function expireDueAlerts(db: Database): Promise<Expired> {
  return db.transaction(async (tx) => {
    const rows = await tx.query<ExpiredRow>(EXPIRE_DUE);
    const occurredAt = new Date();
    const { subscriptionPks } = await emitEvents(
      tx,
      rows.map((row) => {
        const dedupeKey = `alert:${row.id}:expired:${row.expiresAt.getTime()}`;
        const eventId = derivedId('evt', dedupeKey);
        const body = alertExpiredBody({
          eventId,
          occurredAt,
          alertId: row.id,
          condition: row.condition,
          tokenMint: row.tokenMint ?? undefined,
          name: row.name ?? undefined,
          expiresAt: row.expiresAt,
        });
        const { accountId, webhookPk } = row;
        return { id: eventId, accountId, type: 'alert_expired' as const, dedupeKey, webhookPk, body };
      }),
    );
    return { alerts: rows.map(({ id }) => id), subscriptionPks };
  });
}

function unmetOfFinal(condition: AlertCondition): string {
  return `SELECT a.pk FROM decided d CROSS JOIN LATERAL (
     SELECT a.pk FROM alert a WHERE ${activeAlerts(condition, 'd.token_id')}
       AND ${firstMoment(condition, { since: `'-infinity'`, until: 'd.final_since' })} IS NULL LIMIT $2) a`;
}

/** Alerts with a probe have been evaluated by now. Alerts on the status or the resolution of the market outlive its outcome, which they report. */
const RULES_OF_FINAL = `SELECT a.pk FROM decided d CROSS JOIN LATERAL (
     SELECT a.pk FROM alert a WHERE a.token_id = d.token_id AND a.status = 'active' AND a.probe IS NOT NULL AND a.probe NOT IN ${OF_TOKENS}
       AND a.is_armed LIMIT $2) a`;

/** Checks again whether each alert is met: its market may have become final since the search for candidates. */
const EXPIRE_ALERTS = sql(
  'expire_alerts',
  `WITH decided AS MATERIALIZED (
     SELECT * FROM (SELECT token_id, ${finalSince('i.token_id')} AS final_since FROM unnest($1::bigint[]) AS i (token_id) OFFSET 0) t
     WHERE final_since IS NOT NULL),
   unmet AS MATERIALIZED (
     SELECT pk FROM (${[...ALERT_CONDITIONS.map(unmetOfFinal), RULES_OF_FINAL].join(' UNION ALL ')}) u LIMIT $2),
   locked AS MATERIALIZED (
     SELECT pk FROM alert WHERE pk = ANY (ARRAY(SELECT pk FROM unmet)) AND status = 'active' ORDER BY pk FOR UPDATE),
   expired AS (UPDATE alert SET status = 'expired', expired_at = now() WHERE pk = ANY (ARRAY(SELECT pk FROM locked)) RETURNING id)
   SELECT id FROM expired`,
);

/**
 * Expires active alerts of these tokens that no price met before the final outcome of their market, at most `limit`; returns their
 * public ids.
 */
export async function expireAlerts(db: Queryable, tokenIds: readonly bigint[], limit: number): Promise<string[]> {
  if (tokenIds.length === 0) return [];
  const rows = await db.query<{ id: string }>(EXPIRE_ALERTS, [tokenIds, limit]);
  return rows.map((row) => row.id);
}
