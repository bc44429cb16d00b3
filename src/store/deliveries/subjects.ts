import type { EventType } from '../../domain/webhooks/event.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** The subject of an event, as far as its body states it. Numbers are the digits of the body. */
export interface DeliverySubject {
  market?: { venue: string; marketId: string; title: string };
  /** The outcome, or the token of a transfer. */
  symbol?: string;
  condition?: string;
  target?: string;
  price?: string;
  wallet?: string;
  /** The kind of a transaction, with its side. */
  kind?: string;
  /** The change of a balance, or the size of a trade. */
  amount?: string;
  /** The state of a market. */
  status?: string;
  /** The venue of an event that has no market. */
  venue?: string;
  /** The webhook that an event of the account is about. */
  webhookId?: string;
  /** The alert of the event, by its body. */
  alertId?: string;
}

interface Described {
  eventType: EventType;
  body: string;
}

const TITLES = sql(
  'ops_subject_titles',
  `SELECT m.venue, m.venue_market_id AS market_id, m.title, m.sibling_label
   FROM unnest($1::text[], $2::text[]) AS k (venue, market_id) JOIN market m ON m.venue = k.venue AND m.venue_market_id = k.market_id`,
);

/** The subjects of deliveries, in their order. One statement reads the titles of all markets. */
export async function readSubjects(db: Queryable, deliveries: readonly Described[]): Promise<DeliverySubject[]> {
  const stated = deliveries.map(statedSubject);
  const keys = stated.flatMap(({ market }) => (market ? [market] : []));
  type Title = { venue: string; marketId: string; title: string; siblingLabel: string | null };
  const venues = keys.map(({ venue }) => venue);
  const ids = keys.map(({ marketId }) => marketId);
  const rows = keys.length === 0 ? [] : await db.query<Title>(TITLES, [venues, ids]);
  const titles = new Map(rows.map((row) => [JSON.stringify([row.venue, row.marketId]), row]));
  return stated.map(({ market, ...subject }) => {
    const row = market && titles.get(JSON.stringify([market.venue, market.marketId]));
    if (!market || !row) return subject;
    return { ...subject, market: { ...market, title: [row.title, row.siblingLabel].filter(Boolean).join(' · ') } };
  });
}

/** The subject of a delivery for its owner. `alert`: an existing alert of the account; `name`: null without one. */
export interface OwnSubject extends DeliverySubject {
  eventType: EventType;
  alert?: { id: string; name: string | null };
}

const EVENTS_OF_DELIVERIES = sql(
  'events_of_deliveries',
  `SELECT d.id, e.type AS event_type, e.body FROM delivery d JOIN event e ON e.pk = d.event_pk
   WHERE d.id = ANY ($2::text[]) AND e.account_id = $1`,
);
const NAMES_OF_ALERTS = sql(
  'names_of_alerts',
  'SELECT id, name FROM alert WHERE account_id = $1 AND id = ANY ($2::text[])',
);

/** The subjects of deliveries of an account, by the ids of the deliveries. */
export async function readOwnSubjects(
  db: Queryable,
  accountId: bigint,
  deliveryIds: readonly string[],
): Promise<Map<string, OwnSubject>> {
  const events = await db.query<Described & { id: string }>(EVENTS_OF_DELIVERIES, [accountId, deliveryIds]);
  const subjects = await readSubjects(db, events);
  const alertIds = subjects.flatMap(({ alertId }) => (alertId === undefined ? [] : [alertId]));
  const alerts =
    alertIds.length === 0
      ? []
      : await db.query<{ id: string; name: string | null }>(NAMES_OF_ALERTS, [accountId, alertIds]);
  const byId = new Map(alerts.map((alert) => [alert.id, alert]));
  return new Map(
    events.map(({ id, eventType }, index) => {
      const subject = subjects[index] ?? {};
      const alert = byId.get(subject.alertId ?? '');
      return [id, { ...subject, eventType, ...(alert && { alert }) }];
    }),
  );
}

/** The parts of a body that name its subject. The title of the market is still empty. */
function statedSubject({ eventType, body }: Described): DeliverySubject {
  const data = dataOf(body);
  const text = (name: string) => (typeof data[name] === 'string' && data[name] !== '' ? data[name] : undefined);
  const [venue, marketId] = [text('venue'), text('marketId')];
  const symbol = text('tokenSymbol') ?? text('tokenMint');
  const condition = text('condition');
  const wallet = text('wallet');
  const [webhookId, alertId] = [text('webhookId'), text('alertId')];
  const status = text('status') ?? text('resolutionState');
  const kind = { transaction: [text('type'), text('side')], trade: [text('side')] }[eventType as string] ?? [];
  const kindText = kind.filter(Boolean).join(' ');
  const target = digitsOf(body, 'targetPrice');
  const price = digitsOf(body, 'currentPrice') ?? (kindText === '' ? undefined : digitsOf(body, 'price'));
  const amount = digitsOf(body, eventType === 'balance_change' ? 'change' : 'size');
  return {
    ...(venue !== undefined && marketId !== undefined && { market: { venue, marketId, title: '' } }),
    ...(symbol !== undefined && { symbol }),
    ...(condition !== undefined && { condition }),
    ...(wallet !== undefined && { wallet }),
    ...(webhookId !== undefined && { webhookId }),
    ...(alertId !== undefined && { alertId }),
    ...(kindText !== '' && { kind: kindText }),
    ...(status !== undefined && { status }),
    ...(venue !== undefined && { venue }),
    ...(target !== undefined && { target }),
    ...(price !== undefined && { price }),
    ...(amount !== undefined && { amount }),
  };
}

/** The field `data` of a body. Bodies of tests and of older releases may lack it. */
function dataOf(body: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(body);
    const data = typeof parsed === 'object' && parsed !== null && 'data' in parsed ? parsed.data : null;
    return typeof data === 'object' && data !== null ? (data as Record<string, unknown>) : {};
  } catch {
    // The page of the delivery shows a body that is not JSON.
    return {};
  }
}

/** The exact digits of a number, which JSON.parse would round. */
function digitsOf(body: string, name: string): string | undefined {
  return new RegExp(`"${name}":\\s*"?(-?\\d+(?:\\.\\d+)?)`).exec(body)?.[1];
}
