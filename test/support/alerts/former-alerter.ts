import { ALERT_CONDITIONS, type AlertCondition } from '../../../src/domain/alerts/conditions.ts';
import { derivedId } from '../../../src/domain/values/ids.ts';
import type { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { sql, type Tx } from '../../../src/store/db/tx.ts';
import { insertDeliveries, insertEvents } from '../../../src/store/deliveries/events.ts';
import { decodeCause } from '../../../src/store/marks/detail.ts';
import { type Mark, putBackMarks } from '../../../src/store/marks/marks.ts';

export type EvaluationLimits = NonNullable<NonNullable<Parameters<typeof evaluateAlerts>[2]>['limits']>;

/*
 * The evaluation of `above` and `below` without a probe by the former release, which runs beside this one during an upgrade. The statements
 * and the identity of the event are those of that release.
 */

const FINAL_STATUSES = `('resolved', 'settled')`;

const finalSince = (tokenId: string) => `(SELECT coalesce((
      SELECT max(v.known_until) FROM market_version v
      WHERE v.market_id = m.id AND v.facts ->> 'status' NOT IN ${FINAL_STATUSES}), '-infinity')
    FROM outcome u JOIN market m ON m.id = u.market_id
    WHERE u.token_id = ${tokenId} AND m.status IN ${FINAL_STATUSES})`;

const quoteBefore = (tokenId: string, moment: string) => `(
    (SELECT h.received_at, h.price, h.bid, h.ask FROM price_history h
     WHERE h.token_id = ${tokenId} AND h.received_at < ${moment} ORDER BY h.received_at DESC LIMIT 1)
    UNION ALL
    (SELECT least(l.received_at, ${moment} - interval '1 millisecond'), l.price, l.bid, l.ask FROM latest_price l
     WHERE l.token_id = ${tokenId} AND NOT EXISTS (SELECT FROM price_history k WHERE k.token_id = l.token_id))
    LIMIT 1)`;

function firstMet(condition: AlertCondition, since: string, until: string): string {
  const meets = condition === 'above' ? '>= a.target' : '<= a.target';
  const isBefore = (end: string, moment: string) => `(${until} IS NULL OR ${moment} < ${end})`;
  const wholeUntil = `date_trunc('milliseconds', ${until})`;
  return `coalesce(
    (SELECT h.price FROM ${quoteBefore('a.token_id', `date_trunc('milliseconds', a.created_at)`)} h
     WHERE ${since} <= a.created_at AND h.price ${meets} AND ${isBefore(wholeUntil, 'h.received_at')} AND ${isBefore(until, 'a.created_at')}),
    (SELECT o.price FROM observation o
     WHERE o.token_id = a.token_id AND o.received_at >= greatest(date_trunc('milliseconds', a.created_at), ${since})
       AND o.price ${meets} AND ${isBefore(until, 'o.received_at')}
     ORDER BY o.received_at, o.n LIMIT 1))`;
}

const active = (condition: AlertCondition, token: string) =>
  `a.token_id = ${token} AND a.status = 'active' AND a.condition = '${condition}' AND a.probe IS NULL`;

function hitsOf(condition: AlertCondition): string {
  const bound = condition === 'above' ? 'a.target <= b.high' : 'a.target >= b.low';
  return `SELECT a.pk, a.token_id, f.price FROM (
     SELECT n.*, ${finalSince('n.token_id')} AS final_since FROM alert n
     WHERE n.pk = ANY ($3::bigint[]) AND n.status = 'active' AND n.condition = '${condition}' AND n.probe IS NULL OFFSET 0) a
   CROSS JOIN LATERAL (SELECT ${firstMet(condition, `'-infinity'`, 'a.final_since')} AS price OFFSET 0) f WHERE f.price IS NOT NULL
   UNION ALL SELECT a.pk, d.token_id, a.price FROM decided d CROSS JOIN LATERAL (
     SELECT a.pk, f.price FROM alert a
     CROSS JOIN LATERAL (SELECT ${firstMet(condition, `'-infinity'`, 'd.final_since')} AS price OFFSET 0) f
     WHERE ${active(condition, 'd.token_id')} AND f.price IS NOT NULL LIMIT $5) a
   UNION ALL SELECT a.pk, b.token_id, a.price FROM bound b CROSS JOIN LATERAL (
     SELECT a.pk, f.price FROM alert a
     CROSS JOIN LATERAL (SELECT ${firstMet(condition, 'b.since', 'b.final_since')} AS price OFFSET 0) f
     WHERE ${active(condition, 'b.token_id')} AND ${bound} AND f.price IS NOT NULL LIMIT $5) a`;
}

const FIND_HITS = sql(
  'former_alert_hits',
  `WITH bound AS MATERIALIZED (
     SELECT c.token_id, max(o.high) AS high, min(o.low) AS low, min(c.at) AS since, ${finalSince('c.token_id')} AS final_since
     FROM (SELECT token_id, timestamptz 'epoch' + at_ms * interval '1 millisecond' AS at
           FROM unnest($1::bigint[], $2::bigint[]) AS m (token_id, at_ms)) c
     CROSS JOIN LATERAL (
       SELECT max(s.price) AS high, min(s.price) AS low FROM observation s WHERE s.token_id = c.token_id AND s.received_at = c.at) o
     GROUP BY c.token_id),
   decided AS MATERIALIZED (
     SELECT * FROM (SELECT token_id, ${finalSince('i.token_id')} AS final_since FROM unnest($4::bigint[]) AS i (token_id) OFFSET 0) t
     WHERE final_since IS NOT NULL)
   SELECT pk, token_id, price FROM (${ALERT_CONDITIONS.map(hitsOf).join(' UNION ALL ')}) hit LIMIT $6`,
);

const LOCK_ALERTS = sql(
  'former_lock_alerts',
  `SELECT a.pk, a.id, a.account_id, a.condition, a.target, w.pk AS webhook_pk, t.mint AS token_mint
   FROM alert a JOIN token t ON t.id = a.token_id
   LEFT JOIN webhook_subscription w ON w.account_id = a.account_id AND (a.webhook_pk IS NULL OR w.pk = a.webhook_pk)
   WHERE a.pk = ANY ($1::bigint[]) AND a.status = 'active' AND a.probe IS NULL ORDER BY a.pk FOR UPDATE OF a`,
);

const TRIGGER_ALERTS = sql(
  'former_trigger_alerts',
  `UPDATE alert a SET status = 'triggered', triggered_at = now(), triggered_price = f.price, event_id = f.event_id
   FROM unnest($1::bigint[], $2::numeric[], $3::text[]) AS f (pk, price, event_id) WHERE a.pk = f.pk`,
);

const EXPIRE_ALERTS = sql(
  'former_expire_alerts',
  `WITH decided AS MATERIALIZED (
     SELECT * FROM (SELECT token_id, ${finalSince('i.token_id')} AS final_since FROM unnest($1::bigint[]) AS i (token_id) OFFSET 0) t
     WHERE final_since IS NOT NULL),
   unmet AS MATERIALIZED (SELECT pk FROM (${ALERT_CONDITIONS.map(
     (condition) => `SELECT a.pk FROM decided d CROSS JOIN LATERAL (
       SELECT a.pk FROM alert a WHERE ${active(condition, 'd.token_id')}
         AND ${firstMet(condition, `'-infinity'`, 'd.final_since')} IS NULL LIMIT $2) a`,
   ).join(' UNION ALL ')}) u LIMIT $2),
   locked AS MATERIALIZED (
     SELECT pk FROM alert WHERE pk = ANY (ARRAY(SELECT pk FROM unmet)) AND status = 'active' ORDER BY pk FOR UPDATE)
   UPDATE alert SET status = 'expired', expired_at = now() WHERE pk = ANY (ARRAY(SELECT pk FROM locked)) RETURNING id`,
);

interface AlertRow {
  pk: bigint;
  id: string;
  accountId: bigint;
  condition: AlertCondition;
  target: string;
  webhookPk: bigint | null;
  tokenMint: string;
}

/** Evaluates claimed marks as the former release does; each account has at most one webhook. Returns the public ids of fired alerts. */
export async function evaluateAsFormerly(tx: Tx, marks: readonly Mark[], limits: EvaluationLimits): Promise<string[]> {
  const causes = marks.map(({ key, detail }) => ({ key, cause: decodeCause(detail) }));
  const observed = causes.flatMap(({ key, cause }) => (cause.kind === 'observed' ? [{ key, atMs: cause.atMs }] : []));
  const mayExpire = ({ detail }: Mark) => ['marketFinal', 'alertCreated'].includes(decodeCause(detail).kind);
  const perhapsFinal = (some: readonly Mark[]) => [...new Set(some.filter(mayExpire).map(({ key }) => key))];
  const hits = await tx.query<{ pk: bigint; tokenId: bigint; price: string }>(FIND_HITS, [
    observed.map(({ key }) => key),
    observed.map(({ atMs }) => atMs),
    causes.flatMap(({ cause }) => (cause.kind === 'alertCreated' ? [cause.alertPk] : [])),
    perhapsFinal(marks),
    limits.firedPerToken,
    limits.fired,
  ]);
  const countOf = (token: bigint) => hits.filter(({ tokenId }) => tokenId === token).length;
  const isDone = ({ key }: Mark) => hits.length < limits.fired && countOf(key) < limits.firedPerToken;
  const priceOf = new Map(hits.toReversed().map(({ pk, price }) => [pk, price]));
  const fired = (await tx.query<AlertRow>(LOCK_ALERTS, [[...priceOf.keys()]])).map((row) => ({
    ...row,
    price: priceOf.get(row.pk) ?? '',
    eventId: derivedId('evt', `alert:${row.id}`),
  }));
  await tx.query(TRIGGER_ALERTS, [
    fired.map(({ pk }) => pk),
    fired.map(({ price }) => price),
    fired.map(({ eventId }) => eventId),
  ]);
  const eventPks = await insertEvents(
    tx,
    fired.map(({ id, accountId, eventId, condition, target, tokenMint, price }) => ({
      id: eventId,
      accountId,
      type: 'price_alert' as const,
      dedupeKey: `alert:${id}`,
      body: `{"id":"${eventId}","data":{"alertId":"${id}","tokenMint":"${tokenMint}","condition":"${condition}","targetPrice":${target},"currentPrice":${price}}}`,
    })),
  );
  const expired = await tx.query(EXPIRE_ALERTS, [perhapsFinal(marks.filter(isDone)), limits.expired]);
  const isClosed = expired.length < limits.expired;
  await putBackMarks(
    tx,
    'evaluate-alerts',
    marks.filter((mark) => !isDone(mark) || (mayExpire(mark) && !isClosed)),
  );
  await insertDeliveries(
    tx,
    fired.flatMap(({ eventId, webhookPk }) => {
      const eventPk = eventPks.get(eventId);
      return eventPk === undefined || webhookPk === null ? [] : [{ eventPk, subscriptionPk: webhookPk }];
    }),
  );
  return fired.map(({ id }) => id);
}
