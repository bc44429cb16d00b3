import type { ChatFacts } from '../../domain/webhooks/chat-message.ts';
import { type Queryable, sql } from '../db/tx.ts';

const FACTS = sql(
  'chat_facts',
  `SELECT m.title, m.url, (
     SELECT o.label FROM token t JOIN outcome o ON o.token_id = t.id WHERE t.mint = $3 AND o.market_id = m.id) AS outcome
   FROM market m WHERE m.venue = $1 AND m.venue_market_id = $2`,
);

/** The names of the market and the outcome of an event, as the catalog has them now. */
export async function readChatFacts(db: Queryable, body: string): Promise<ChatFacts> {
  const { venue, marketId, tokenMint } = (JSON.parse(body) as { data: Record<string, unknown> }).data;
  if (typeof venue !== 'string' || typeof marketId !== 'string') return {};
  const token = typeof tokenMint === 'string' ? tokenMint : null;
  const [row] = await db.query<{ title: string; url: string | null; outcome: string | null }>(FACTS, [
    venue,
    marketId,
    token,
  ]);
  if (!row) return {};
  return {
    title: row.title,
    ...(row.outcome !== null && { outcome: row.outcome }),
    ...(row.url !== null && { url: row.url }),
  };
}
