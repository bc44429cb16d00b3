import type { Config } from '../../src/config/config.ts';
import type { Environment } from '../terminal.ts';
import { feedLines } from './feed-lines.ts';

interface StartFacts extends Pick<Config, 'venues' | 'feeds'> {
  readonly apiUrl: string;
  readonly environment: Environment;
  readonly dataDir: string;
  /** Whether an operator can log in. */
  readonly isOpsOn: boolean;
  /** Calls that a user can paste. */
  readonly createKey: string;
  readonly addOperator: string;
}

type OffPart = [isOff: boolean, part: string, reason: string];

const RULE = '-'.repeat(100);

/** The end of the start-up of `oddswire start`: addresses, the call that creates a key, and the parts that are off with the reason. */
export function startBannerText(facts: StartFacts): string {
  const { apiUrl, environment, dataDir, isOpsOn, venues, createKey } = facts;
  const off = offParts(facts);
  const { on } = feedLines(facts);
  return [
    RULE,
    `oddswire is ready: API ${apiUrl}, documentation ${apiUrl}/docs`,
    ...(isOff(environment['CONSOLE']) ? [] : [`  console     ${apiUrl}/, with an API key`]),
    `  streams     ${apiUrl}/v1/all/stream, for language models ${apiUrl}/mcp`,
    ...(isOpsOn ? [`  operators   ${environment['OPS_PUBLIC_URL'] || apiUrl}/ops`] : []),
    `  venues      ${venues.join(', ')}`,
    ...(on.length === 0 ? [] : [`  feeds       ${on.join(', ')}; their states are in ${apiUrl}/v1/venues`]),
    `  database    ${environment['DATABASE_URL'] ? 'of DATABASE_URL' : `embedded, in ${dataDir}`}`,
    `  queues      ${environment['REDIS_URL'] ? 'in Redis, of REDIS_URL' : 'in Postgres, because REDIS_URL is not set'}`,
    `Create an API key: ${createKey}`,
    ...(off.length === 0 ? [] : ['Off:']),
    ...off.map(([part, reason]) => `  ${part}: ${reason}`),
    RULE,
  ].join('\n');
}

/** The parts that are off, each with its reason and the way to turn it on. */
function offParts({ environment, isOpsOn, venues, feeds, addOperator }: StartFacts): [string, string][] {
  const parts: OffPart[] = [
    [!isOpsOn, 'operator pages', `no operator exists; set OPS_PASSWORD, or run ${addOperator}`],
    [isOff(environment['CONSOLE']), 'console', 'CONSOLE is off'],
    [!environment['CORS_ORIGINS'], 'calls from pages of browsers', 'CORS_ORIGINS names no origin'],
    ...feedLines({ venues, feeds }).off.map(
      ({ venue, reason, canBeOn }): OffPart => [canBeOn, `feed of ${venue}`, reason],
    ),
    [!venues.includes('solana'), 'tokens and wallets of solana', 'VENUES does not name solana'],
    [venues.includes('solana') && !environment['SOLANA_RPC_URL'], 'wallets of solana', 'SOLANA_RPC_URL is not set'],
  ];
  return parts.filter(([isPartOff]) => isPartOff).map(([, part, reason]) => [part, reason]);
}

function isOff(value: string | undefined): boolean {
  return value === 'off';
}
