import type { Config } from '../../src/config/config.ts';
import { feedLines } from '../start/feed-lines.ts';
import { DEMO_ACCOUNT, type DemoSignIn } from './sign-in.ts';

/** The contents of the banner. */
interface BannerFacts extends Pick<Config, 'venues' | 'feeds'> {
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly opsPassword: string;
  /** The address of the receiver for webhooks of the user. */
  readonly receiverUrl: string;
  readonly dataDir: string;
  /** The folder of the archive. */
  readonly archiveDir: string | undefined;
  /** Absent when the console is off. */
  readonly signIn: DemoSignIn | undefined;
  /** A market with a price. */
  readonly marketId: string;
  /** One of its outcomes. */
  readonly outcomeId: string;
}

const RULE = '-'.repeat(100);

/** The sign-in link, the addresses, and the settings of the calls of docs/start.md: one screen. */
export function bannerText(facts: BannerFacts): string {
  const { apiUrl, apiKey, opsPassword, receiverUrl, dataDir, archiveDir, signIn, marketId, outcomeId } = facts;
  const { on, off } = feedLines(facts);
  return [
    RULE,
    'oddswire demo: a simulated exchange, the six processes, and a local webhook receiver',
    ...signInLines(signIn),
    `  API         ${apiUrl}   documentation ${apiUrl}/docs`,
    `  operators   ${apiUrl}/ops   password ${opsPassword}`,
    `  receiver    ${receiverUrl}   for webhooks of your own: their events appear below`,
    ...(on.length === 0 ? [] : [`  feeds       ${on.join(', ')}`]),
    ...off.map(({ venue, reason }) => `  no feed     ${venue}: ${reason}`),
    `  data        ${dataDir}`,
    ...(archiveDir === undefined ? [] : [`  archive     ${archiveDir}`]),
    '',
    'Settings for the calls of docs/start.md. The key is of the account bootstrap, which has the alerts of the demo:',
    `  API=${apiUrl}`,
    `  KEY=${apiKey}`,
    `  MARKET=${encodeURIComponent(marketId)}`,
    `  OUTCOME=${outcomeId}`,
    'Events appear below as they arrive. Ctrl-C stops everything.',
    RULE,
  ].join('\n');
}

function signInLines(signIn: DemoSignIn | undefined): string[] {
  if (signIn === undefined) return [''];
  const until = `${signIn.expiresAt.toISOString().slice(11, 16)} UTC`;
  return [
    '',
    `Open the console, signed in to your account ${DEMO_ACCOUNT}:`,
    `  ${signIn.url}`,
    `The link works once, until ${until}. Another link: ${signIn.freshLink}`,
    '',
  ];
}
