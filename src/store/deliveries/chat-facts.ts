import type { ChatFacts } from '../../domain/webhooks/chat-values.ts';
import { type Queryable, sql } from '../db/tx.ts';

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
