import { json, type Reply, type SimRequest } from '../server/reply.ts';
import type { SolanaNetwork } from './network.ts';

const MAX_PRICES = 50;
const MAX_TOKENS = 100;
const CREATED_AT = '2024-06-05T08:55:25.527Z';

/** The parts of Price v3 and Tokens v2 that the service reads. */
export function jupiterRoutes(network: SolanaNetwork): (request: SimRequest) => Reply | undefined {
  return ({ method, path, query }) => {
    if (method !== 'GET') return undefined;
    if (path === '/price/v3') return prices(network, idsOf(query.get('ids')));
    if (path === '/tokens/v2/search') return search(network, idsOf(query.get('query')));
    return undefined;
  };
}

function idsOf(text: string | null): string[] {
  return [...new Set((text ?? '').split(',').filter((id) => id !== ''))];
}

function refuse(message: string): Reply {
  return json({ code: 400, message }, 400);
}

function prices(network: SolanaNetwork, ids: readonly string[]): Reply {
  if (ids.length === 0 || ids.length > MAX_PRICES) return refuse(`ids: 1 to ${MAX_PRICES} of them`);
  const entries = ids.flatMap((mint) => {
    const price = network.priceOf(mint);
    if (!price) return [];
    const { usd, blockId, decimals } = price;
    return [
      [
        mint,
        { createdAt: CREATED_AT, liquidity: 621679197.67, usdPrice: usd, blockId, decimals, priceChange24h: 1.29 },
      ],
    ];
  });
  return json(Object.fromEntries(entries));
}

function search(network: SolanaNetwork, ids: readonly string[]): Reply {
  if (ids.length === 0 || ids.length > MAX_TOKENS) return refuse(`query: 1 to ${MAX_TOKENS} mints`);
  const found = network.tokens().filter(({ mint }) => ids.includes(mint));
  return json(
    found.map(({ mint, symbol, name, decimals, programId }) => ({
      id: mint,
      name,
      symbol,
      decimals,
      tokenProgram: programId,
      isVerified: true,
      tags: ['verified'],
      audit: { mintAuthorityDisabled: true, freezeAuthorityDisabled: true },
    })),
  );
}
