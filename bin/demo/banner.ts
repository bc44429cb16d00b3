import type { Config } from '../../src/config/config.ts';
import { feedLines } from '../start/feed-lines.ts';

/** The contents of the banner. */
interface BannerFacts extends Pick<Config, 'venues' | 'feeds'> {
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly opsPassword: string;
  readonly dataDir: string;
  /** The folder of the archive. */
  readonly archiveDir: string | undefined;
  /** A command that lists the keys of the demo. */
  readonly listKeys: string;
  /** A market with a price. */
  readonly marketId: string;
  /** One of its outcomes. */
  readonly outcomeId: string;
}

const RULE = '-'.repeat(100);

/** The calls of docs/start.md, for a shell with the settings of the banner. */
const FIRST_CALLS = [
  'curl -H "Authorization: Bearer $KEY" "$API/v1/polymarket/markets?status=open&limit=5"',
  'curl -H "Authorization: Bearer $KEY" "$API/v1/polymarket/markets/$MARKET/candles?interval=5m"',
  'curl -H "Authorization: Bearer $KEY" "$API/v1/polymarket/markets/$MARKET/orderbook?depth=5"',
  `curl -H "X-API-Key: $KEY" -H 'Content-Type: application/json' "$API/v1/webhooks" \\`,
  `     -d '{"url":"https://example.com/hook","events":["price_alert"]}'`,
  `curl -H "X-API-Key: $KEY" -H 'Content-Type: application/json' "$API/v1/alerts" \\`,
  '     -d "{\\"tokenMint\\":\\"$OUTCOME\\",\\"condition\\":\\"above\\",\\"price\\":0.01}"',
];

/** Addresses, the key, and example calls that can be pasted into a shell. */
export function bannerText(facts: BannerFacts): string {
  const { apiUrl, apiKey, opsPassword, dataDir, archiveDir, listKeys, marketId, outcomeId } = facts;
  const { on, off } = feedLines(facts);
  return [
    RULE,
    'oddswire demo: a simulated exchange, the six processes, and a local webhook receiver',
    `  API         ${apiUrl}   documentation ${apiUrl}/docs`,
    `  API key     ${apiKey}`,
    `  console     ${apiUrl}/   sign in with the API key`,
    `  operators   ${apiUrl}/ops   password ${opsPassword}`,
    ...(on.length === 0 ? [] : [`  feeds       ${on.join(', ')}; their states are in ${apiUrl}/v1/venues`]),
    ...off.map(({ venue, reason }) => `  no feed     ${venue}: ${reason}`),
    `  data        ${dataDir}`,
    ...(archiveDir === undefined ? [] : [`  archive     ${archiveDir}   calendar ${apiUrl}/archive`]),
    `  commands    ${listKeys}`,
    'The first calls, for a shell. The last one creates an alert that fires at once; the receiver of the demo gets its event:',
    `  API=${apiUrl}`,
    `  KEY=${apiKey}`,
    `  MARKET=${encodeURIComponent(marketId)}`,
    `  OUTCOME=${outcomeId}`,
    ...FIRST_CALLS.map((line) => `  ${line}`),
    'Watch prices move:',
    '  curl -N -H "Authorization: Bearer $KEY" "$API/v1/all/stream?channels=prices,trades"',
    '  ODDSWIRE_URL=$API ODDSWIRE_KEY=$KEY npm run --silent cli -- watch',
    'The receiver prints events below as they arrive. Ctrl-C stops everything.',
    RULE,
  ].join('\n');
}
