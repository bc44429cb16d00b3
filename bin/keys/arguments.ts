import { type Arguments, type Options, readArguments, UsageError } from '../../cli/arguments.ts';
import { parseFuture } from '../../cli/spans.ts';
import { isName, MAX_NAME_LENGTH, SCOPES, type Scope } from '../../src/domain/values/api-key.ts';
import type { AccountQuotas } from '../../src/store/accounts/quotas.ts';

export type KeysOptions = { json: boolean } & (
  | { verb: 'create'; account: string; name: string; scopes: readonly Scope[]; expiresAt?: Date }
  | { verb: 'list'; account?: string }
  | { verb: 'link'; account: string; scopes: readonly Scope[]; url?: string }
  | { verb: 'revoke'; id: string }
  | { verb: 'quota'; account: string; change: Partial<AccountQuotas> }
  | { verb: 'accounts' }
  | { verb: 'sealed' }
  | { verb: 'reseal' }
);
type Verb = KeysOptions['verb'];

export const KEYS_USAGE = `usage: oddswire keys create --account A --name N [--scopes S,S] [--expires TIME] [--json]
       oddswire keys list [--account A] [--json]
       oddswire keys link --account A [--scopes S,S] [--url ADDRESS] [--json]
       oddswire keys revoke ID [--json]
       oddswire keys accounts [--json]
       oddswire keys quota --account A [--webhooks N] [--alerts N] [--wallets N] [--keys N] [--rate N]
                           [--cold-reads N] [--json]
       oddswire keys sealed [--json]
       oddswire keys reseal [--json]

  create    creates a key, and the account if it does not exist; the key is shown only once
  list      lists keys with their scopes, expiry and last use, never the keys themselves
  link      prints an address that signs one person in to the console of an account, once, within 15 minutes;
            creates the account if it does not exist
  revoke    ends a key within a second, permanently
  accounts  lists every account with its usage and limits
  quota     sets the given limits of an account and shows all of its limits
  sealed    counts the stored values that each key of SECRETS_KEYS sealed
  reseal    seals every stored value again with the first key of SECRETS_KEYS; an interrupted run continues at the next call

  ADDRESS is the address of the console; the default is OPS_PUBLIC_URL, else http://HOST:PORT.
  A and N have 1 to 100 characters. S is one of ${SCOPES.join(', ')}; the default is all of them.
  TIME is an age from now (12h, 90d), epoch seconds or ISO 8601 (2027-01-01, 2027-01-01T12:00Z); the default is never.
  --webhooks, --alerts, --wallets and --keys limit the number that an account may have, --rate its requests per minute
  and --cold-reads its cold reads per minute: a whole number, or "default" for the configured value. --rate 0: no limit.
  Exit code: 0 done, 1 not done (no such key, no such account, values of
  another key left), 2 wrong arguments.`;

/** The options of limits, with their names in the API. */
const LIMITS = {
  webhooks: 'webhooks',
  alerts: 'alerts',
  wallets: 'wallets',
  keys: 'keys',
  rate: 'ratePerMinute',
  'cold-reads': 'coldReadsPerMinute',
} as const satisfies Record<string, keyof AccountQuotas>;

const ACCOUNT = { account: { value: 'A' } };
const SCOPE_LIST = { scopes: { value: 'S,S' } };
const JSON_FLAG = { json: {} };

export const KEYS_OPTIONS: Readonly<Record<Verb, Options>> = {
  create: { ...ACCOUNT, name: { value: 'N' }, ...SCOPE_LIST, expires: { value: 'TIME' }, ...JSON_FLAG },
  list: { ...ACCOUNT, ...JSON_FLAG },
  link: { ...ACCOUNT, ...SCOPE_LIST, url: { value: 'ADDRESS' }, ...JSON_FLAG },
  revoke: JSON_FLAG,
  quota: { ...ACCOUNT, ...Object.fromEntries(Object.keys(LIMITS).map((name) => [name, { value: 'N' }])), ...JSON_FLAG },
  accounts: JSON_FLAG,
  sealed: JSON_FLAG,
  reseal: JSON_FLAG,
};
const VERBS = Object.keys(KEYS_OPTIONS) as Verb[];

/** The maximum of a Postgres integer column. */
const MAX_LIMIT = 2_147_483_647;
/** The last second of the year 9999: later times are probably typing errors. */
const MAX_EXPIRY_MS = 253_402_300_799_000;

/** Parses the arguments of `oddswire keys`. @throws UsageError that names every problem */
export function parseKeysArguments(argv: readonly string[], nowMs: number): KeysOptions {
  const verb = VERBS.find((each) => each === argv[0]);
  if (verb === undefined) throw new UsageError([`name a command: ${VERBS.join(', ')}`]);
  const problems: string[] = [];
  const given = readArguments(argv.slice(1), KEYS_OPTIONS[verb], problems);
  const options = readOptions(verb, given, nowMs, problems);
  problems.push(...given.words.map((word) => `unknown argument ${word}`));
  if (problems.length > 0) throw new UsageError(problems);
  return options;
}

function readOptions(verb: Verb, given: Arguments, nowMs: number, problems: string[]): KeysOptions {
  const json = given.flags.has('json');
  switch (verb) {
    case 'create': {
      const account = readName(given, 'account', problems) ?? '';
      const name = readName(given, 'name', problems) ?? '';
      const expiresAt = readExpiry(given, nowMs, problems);
      const scopes = readScopes(given, problems);
      return { verb, json, account, name, scopes, ...(expiresAt !== undefined && { expiresAt }) };
    }
    case 'list': {
      const account = given.texts.has('account') ? readName(given, 'account', problems) : undefined;
      return { verb, json, ...(account !== undefined && { account }) };
    }
    case 'link': {
      const account = readName(given, 'account', problems) ?? '';
      const scopes = readScopes(given, problems);
      const url = given.texts.get('url');
      if (url !== undefined && !/^https?:\/\/[^\s/]+\/?$/.test(url)) {
        problems.push('--url must be an address without a path, such as https://odds.example.com');
      }
      return { verb, json, account, scopes, ...(url !== undefined && { url: url.replace(/\/$/, '') }) };
    }
    case 'revoke': {
      const id = given.words.shift() ?? '';
      // The shell's history would contain the whole key, so the error warns about it.
      if (/^ow_live_[0-9A-Za-z]+_/.test(id)) problems.push('revoke takes the id of a key, not the key');
      else if (!/^[\w-]{1,64}$/.test(id)) problems.push('revoke takes the id of a key, as `list` shows it');
      return { verb, json, id };
    }
    case 'quota': {
      return { verb, json, account: readName(given, 'account', problems) ?? '', change: readLimits(given, problems) };
    }
    case 'accounts':
    case 'sealed':
    case 'reseal':
      return { verb, json };
  }
}

function readName({ texts }: Arguments, option: 'account' | 'name', problems: string[]): string | undefined {
  const text = texts.get(option)?.trim();
  if (text === undefined || text === '') {
    problems.push(`--${option} must not be empty`);
  } else if (!isName(text)) {
    problems.push(`--${option} must have at most ${MAX_NAME_LENGTH} characters, none of them control characters`);
  } else {
    return text;
  }
  return undefined;
}

function readScopes({ texts }: Arguments, problems: string[]): Scope[] {
  const asked = (texts.get('scopes') ?? SCOPES.join(',')).split(',').map((scope) => scope.trim());
  const unknown = asked.filter((scope) => !SCOPES.some((each) => each === scope));
  for (const scope of unknown) problems.push(`--scopes: ${scope || '(empty)'} is not one of ${SCOPES.join(', ')}`);
  return SCOPES.filter((scope) => asked.includes(scope));
}

function readExpiry({ texts }: Arguments, nowMs: number, problems: string[]): Date | undefined {
  const text = texts.get('expires');
  if (text === undefined) return undefined;
  const seconds = parseFuture(text, nowMs / 1_000);
  const atMs = seconds === null ? null : seconds * 1_000;
  if (atMs === null) problems.push('--expires must be an age from now (12h, 90d), epoch seconds or an ISO 8601 time');
  else if (atMs <= nowMs) problems.push('--expires must not be in the past');
  else if (atMs > MAX_EXPIRY_MS) problems.push('--expires must be before the year 10000');
  else return new Date(atMs);
  return undefined;
}

function readLimits({ texts }: Arguments, problems: string[]): Partial<AccountQuotas> {
  const change: { -readonly [Limit in keyof AccountQuotas]?: number | null } = {};
  for (const [option, limit] of Object.entries(LIMITS)) {
    const text = texts.get(option);
    if (text === undefined) continue;
    if (text === 'default') change[limit] = null;
    else if (/^\d{1,10}$/.test(text) && Number(text) <= MAX_LIMIT) change[limit] = Number(text);
    else problems.push(`--${option} must be a whole number from 0 to ${MAX_LIMIT}, or default`);
  }
  return change;
}
