/** The contents of the banner. */
interface BannerFacts {
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly opsPassword: string;
  readonly dataDir: string;
  /** A market with a price; null until one has a price. */
  readonly marketId: string | null;
  /** One of its outcomes. */
  readonly outcomeId: string | null;
}

const RULE = '-'.repeat(100);

/** Addresses, the key, and example calls. */
export function bannerText(facts: BannerFacts): string {
  const { apiUrl, apiKey } = facts;
  const market = encodeURIComponent(facts.marketId ?? '<market_id>');
  const read = (path: string) =>
    `  curl -s -H 'Authorization: Bearer ${apiKey}' '${apiUrl}/v1/polymarket/markets${path}'`;
  const account = (path: string) => `  curl -s -H 'X-API-Key: ${apiKey}' '${apiUrl}/v1/${path}'`;
  const alert = JSON.stringify({ tokenMint: facts.outcomeId ?? '<outcome_id>', condition: 'above', price: 0.01 });
  return [
    RULE,
    'oddswire demo: a simulated exchange, the five processes, and a local webhook receiver',
    `  API         ${apiUrl}`,
    `  API key     ${apiKey}`,
    `  operators   ${apiUrl}/ops   password ${facts.opsPassword}`,
    `  data        ${facts.dataDir}`,
    'Markets, and details of one market:',
    read('?limit=5'),
    read(`/${market}/prices`),
    read(`/${market}/candles?interval=1m`),
    read(`/${market}/trades?limit=5`),
    read(`/${market}/orderbook?depth=5`),
    'Webhooks and alerts; the second call creates an alert that fires at once:',
    account('webhooks'),
    `  curl -s -H 'X-API-Key: ${apiKey}' -H 'Content-Type: application/json' -d '${alert}' '${apiUrl}/v1/alerts'`,
    account('alerts'),
    'Watched wallets; the demo watches one that trades several times a minute:',
    account('wallets'),
    'The receiver prints events below as they arrive. Ctrl-C stops everything.',
    RULE,
  ].join('\n');
}
