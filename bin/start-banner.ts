import type { Environment } from './terminal.ts';

interface StartFacts {
  readonly apiUrl: string;
  readonly environment: Environment;
  readonly dataDir: string;
  /** Whether an operator can log in. */
  readonly isOpsOn: boolean;
  /** The names of the polled venues. */
  readonly venues: readonly string[];
  /** Calls that a user can paste. */
  readonly createKey: string;
  readonly addOperator: string;
}

const RULE = '-'.repeat(100);

/** The end of the start-up of `oddswire start`: addresses, the call that creates a key, and the parts that are off with the reason. */
export function startBannerText(facts: StartFacts): string {
  const { apiUrl, environment, dataDir, isOpsOn, venues, createKey } = facts;
  const off = offParts(facts);
  return [
    RULE,
    `oddswire is ready: API ${apiUrl}, documentation ${apiUrl}/docs`,
    `  streams     ${apiUrl}/v1/all/stream, for language models ${apiUrl}/mcp`,
    ...(isOpsOn ? [`  operators   ${environment['OPS_PUBLIC_URL'] || apiUrl}/ops`] : []),
    `  venues      ${venues.join(', ')}`,
    `  database    ${environment['DATABASE_URL'] ? 'of DATABASE_URL' : `embedded, in ${dataDir}`}`,
    `  queues      ${environment['REDIS_URL'] ? 'in Redis, of REDIS_URL' : 'in Postgres, because REDIS_URL is not set'}`,
    `Create an API key: ${createKey}`,
    ...(off.length === 0 ? [] : ['Off:']),
    ...off.map(([part, reason]) => `  ${part}: ${reason}`),
    RULE,
  ].join('\n');
}

/** The parts that are off, each with its reason and the way to turn it on. */
function offParts({ environment, isOpsOn, venues, addOperator }: StartFacts): [string, string][] {
  const isSolanaPolled = venues.includes('solana');
  return [
    ...(isOpsOn
      ? []
      : [['operator pages', `no operator exists; set OPS_PASSWORD, or run ${addOperator}`] as [string, string]]),
    ...(environment['CORS_ORIGINS']
      ? []
      : [['calls from pages of browsers', 'CORS_ORIGINS names no origin'] as [string, string]]),
    ...(isSolanaPolled
      ? environment['SOLANA_RPC_URL']
        ? []
        : [['wallets of solana', 'SOLANA_RPC_URL is not set'] as [string, string]]
      : [['tokens and wallets of solana', 'VENUES does not name solana'] as [string, string]]),
  ];
}
