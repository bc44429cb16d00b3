import { SCOPES } from '../../src/domain/values/api-key.ts';
import { openOperatorDatabase } from '../../src/embedded/operator-database.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { makeSignInLink } from '../keys/link.ts';
import { callOf, type Environment } from '../terminal.ts';

/** The account of the person at the demo. It begins empty: the alerts and the webhook of the demo are of another one. */
export const DEMO_ACCOUNT = 'me';

/** The address that `oddswire keys link` uses without `--url` and without settings. */
const DEFAULT_ADDRESS = 'http://127.0.0.1:8080';

export interface DemoSignIn {
  /** Signs one person in, once. */
  readonly url: string;
  readonly expiresAt: Date;
  /** A command that prints another one. */
  readonly freshLink: string;
}

interface SignInOptions {
  readonly environment: Environment;
  readonly demoDir: string;
  /** The address of the API. */
  readonly apiUrl: string;
  readonly log: Logger;
}

/** A sign-in link of the running demo; undefined when the console is off. */
export async function openSignIn({
  environment,
  demoDir,
  apiUrl,
  log,
}: SignInOptions): Promise<DemoSignIn | undefined> {
  if (environment['CONSOLE'] === 'off') return undefined;
  const base = environment['OPS_PUBLIC_URL']?.replace(/\/$/, '') || apiUrl;
  const databaseUrl = environment['DATABASE_DIRECT_URL'] || environment['DATABASE_URL'];
  const opened = await openOperatorDatabase({
    ...{ name: 'demo', databaseUrl, log },
    dataDirs: [demoDir],
    prefersRunning: true,
  });
  try {
    const made = await makeSignInLink(opened.db, { account: DEMO_ACCOUNT, scopes: SCOPES, base });
    const url = base === DEFAULT_ADDRESS ? '' : ` --url ${base}`;
    return { ...made, freshLink: callOf('keys', `link --account ${DEMO_ACCOUNT}${url}`, process.env) };
  } finally {
    await opened.close();
  }
}
