import type { System } from '../../support/processes/system.ts';

interface Market {
  market_id: string;
  outcomes: { outcome_id: string }[];
}
interface Price {
  outcomes: { outcome_id: string; price: number }[];
}

type Running = Pick<System, 'read' | 'call'>;

/** One price of each market, if it has one. */
export async function quotes(running: Running): Promise<{ tokenId: string; price: number }[]> {
  const markets = await running.read<Market[]>('/v1/polymarket/markets?status=open&limit=50');
  const found: { tokenId: string; price: number }[] = [];
  for (const market of markets) {
    const snapshot = await running.read<Price>(`/v1/polymarket/markets/${market.market_id}/prices`).catch(() => null);
    const first = snapshot?.outcomes.find((outcome) => outcome.price > 0.1 && outcome.price < 0.9);
    if (first) found.push({ tokenId: first.outcome_id, price: first.price });
  }
  return found;
}

/** Alerts on both sides of the price, some so near that noise alone meets them. */
export async function createAlerts(
  running: Running,
  webhookId: string,
  tokens: { tokenId: string; price: number }[],
): Promise<void> {
  for (const { tokenId, price } of tokens) {
    for (const [condition, away] of [
      ['above', 0.01],
      ['above', 0.05],
      ['below', -0.01],
      ['below', -0.05],
    ] as const) {
      const target = Number((price + away).toFixed(3));
      await running.call('POST', '/v1/alerts', { tokenMint: tokenId, condition, price: target, webhookId });
    }
  }
}
