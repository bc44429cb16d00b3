import type { Environment } from './terminal.ts';

/**
 * A call of a subcommand that a user can paste: in the way in which the user called this one (by npm, or by the executable), and
 * with the data folder of this one. A command finds the default folder by itself, and DATABASE_URL is a secret.
 */
export function callOf(command: string, rest: string, environment: Environment): string {
  const folder = environment['DATABASE_URL'] ? undefined : environment['DATA_DIR'];
  const script = environment['npm_lifecycle_event'];
  const call =
    script === undefined || script === 'npx'
      ? `${script === undefined ? '' : 'npx '}oddswire ${command} ${rest}`
      : `npm run --silent ${command} -- ${rest}`;
  return folder ? `DATA_DIR=${folder} ${call}` : call;
}
