import type { ChatFormat } from '../../domain/chat/chat-url.ts';
import type { ChatFacts } from '../../domain/webhooks/chat-values.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { SKIPPED_BEFORE } from './order.ts';

const LABEL_OF = (mint: string) =>
  `SELECT o.label FROM token t JOIN outcome o ON o.token_id = t.id WHERE t.mint = ${mint} AND o.market_id = m.id`;

/** An event without a market, such as the end of an alert, may have an outcome. */
const FACTS = sql(
  'chat_facts',
  `SELECT m.title, m.url, (${LABEL_OF('$3')}) AS outcome, (${LABEL_OF('$4')}) AS winner, (${LABEL_OF('$5')}) AS previous_winner
   FROM market m WHERE m.id = coalesce(
     (SELECT id FROM market WHERE venue = $1 AND venue_market_id = $2),
     (SELECT o.market_id FROM token t JOIN outcome o ON o.token_id = t.id WHERE t.mint = $3))`,
);

type FactsRow = { title: string } & Record<'url' | 'outcome' | 'winner' | 'previousWinner', string | null>;

/** The names of the market and the outcome of an event, as the catalog has them now. */
export async function readChatFacts(db: Queryable, body: string): Promise<ChatFacts> {
  const { data } = JSON.parse(body) as { data: Record<string, unknown> };
  const given = ['venue', 'marketId', 'tokenMint', 'winningOutcomeId', 'previousWinningOutcomeId'].map((name) => {
    return typeof data[name] === 'string' ? data[name] : null;
  });
  const [row] = await db.query<FactsRow>(FACTS, given);
  if (!row) return {};
  const { title, url, outcome, winner, previousWinner } = row;
  return {
    title,
    ...(outcome !== null && { outcome }),
    ...(winner !== null && { winner }),
    ...(previousWinner !== null && { previousWinner }),
    ...(url !== null && { url }),
  };
}

/** The facts of the requests of a delivery beside its event, by the present options of its webhook. */
export interface RequestFacts {
  webhookId: string;
  /** Null: the body of the event with signatures. */
  format: ChatFormat | null;
  /** The webhook's own headers. */
  headerNames: string[];
  /** The skipped events that the next request of a pending delivery names. */
  skipped: string[];
}

const REQUEST_FACTS = sql(
  'request_facts',
  `SELECT w.id AS webhook_id, w.format, coalesce(w.header_names, '{}') AS header_names,
     coalesce(CASE WHEN d.status = 'pending' THEN ${SKIPPED_BEFORE} END, '{}') AS skipped
   FROM delivery d JOIN webhook_subscription w ON w.pk = d.subscription_pk WHERE d.id = $1`,
);

/** Null when the delivery does not exist. */
export async function readRequestFacts(db: Queryable, deliveryId: string): Promise<RequestFacts | null> {
  const [found] = await db.query<RequestFacts>(REQUEST_FACTS, [deliveryId]);
  return found ?? null;
}
