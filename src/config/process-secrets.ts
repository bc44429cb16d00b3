import type { VariableName } from './variables.ts';

/** The processes that need a secret. Every other process ignores the variable, and the runner does not pass it on. */
export const SECRET_READERS = {
  SECRETS_KEYS: ['api', 'deliverer'],
  BOOTSTRAP_API_KEY: ['api'],
  OPS_PASSWORD: ['api'],
  OPS_VIEWER_PASSWORD: ['api'],
  JUPITER_API_KEY: ['poller'],
  // The API only reports whether the feed of Kalshi is on.
  KALSHI_API_KEY_ID: ['api', 'poller', 'streamer'],
  KALSHI_PRIVATE_KEY_FILE: ['poller', 'streamer'],
  // The API only reports whether wallets of Solana are on.
  SOLANA_RPC_URL: ['api', 'poller'],
} as const satisfies Partial<Record<VariableName, readonly string[]>>;

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether the process of this name may have the variable: any variable without a row above. */
export function mayRead(processName: string, variable: string): boolean {
  const readers: readonly string[] | undefined = Object.hasOwn(SECRET_READERS, variable)
    ? SECRET_READERS[variable as keyof typeof SECRET_READERS]
    : undefined;
  return readers === undefined || readers.includes(processName);
}

/** The environment without the secrets that the process does not need. */
export function environmentOf(processName: string, environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([variable]) => mayRead(processName, variable)));
}
