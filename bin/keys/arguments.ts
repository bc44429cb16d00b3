import { type Arguments, type Options, parse, present, verbOf } from '../../cli/arguments.ts';
import { futureOf } from '../../cli/spans.ts';
import { isName, MAX_NAME_LENGTH, SCOPES, type Scope } from '../../src/domain/values/api-key.ts';
import type { AccountQuotas } from '../../src/store/accounts/quotas.ts';

type Chosen =
  | { verb: 'create'; account: string; name: string; scopes: readonly Scope[]; expiresAt?: Date }
  | { verb: 'list'; account?: string }
  | { verb: 'link'; account: string; scopes: readonly Scope[]; url?: string }
  | { verb: 'revoke'; id: string }
  | { verb: 'quota'; account: string; change: Partial<AccountQuotas> }
  | { verb: 'accounts' }
  | { verb: 'sealed' }
  | { verb: 'reseal' };
export type KeysOptions = { json: boolean } & Chosen;
type Verb = KeysOptions['verb'];

export const KEYS_USAGE = `usage: oddswire keys create --account A --name N [--scopes S,S] [--expires TIME] [--json]
       oddswire keys list [--account A] [--json]
       oddswire keys link --account A [--scopes S,S] [--url ADDRESS] [--json]
       oddswire keys revoke ID [--json]
       oddswire keys accounts [--json]
       oddswire keys quota --account A [--webhooks N] [--alerts N] [--wallets N] [--keys N] [--rate N]
                           [--cold-reads N] [--archive N] [--json]
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
  --webhooks, --alerts, --wallets and --keys limit the number that an account may have, --rate its requests per minute,
  --cold-reads its cold reads per minute and --archive its megabytes of archive files per UTC day: a whole number, or
  "default" for the configured value. --rate 0: no limit.
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
  archive: 'archiveMbPerDay',
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
  const verb = verbOf(argv, VERBS);
  return parse(argv.slice(1), { options: KEYS_OPTIONS[verb], words: [0, verb === 'revoke' ? 1 : 0] }, (given) => ({
    json: given.flags.has('json'),
    ...readOptions(verb, given, nowMs),
  }));
}

function readOptions(verb: Verb, given: Arguments, nowMs: number): Chosen {
  const { words, texts, problems } = given;
  switch (verb) {
    case 'create': {
      const account = readName(given, 'account');
      const name = readName(given, 'name');
      const expiresAt = readExpiry(given, nowMs);
      return { verb, account, name, scopes: readScopes(given), ...present({ expiresAt }) };
    }
    case 'list':
      return { verb, ...(texts.has('account') && { account: readName(given, 'account') }) };
    case 'link': {
      const account = readName(given, 'account');
      const scopes = readScopes(given);
      const url = texts.get('url');
      if (url !== undefined && !/^https?:\/\/[^\s/]+\/?$/.test(url)) {
        problems.push('--url must be an address without a path, such as https://odds.example.com');
      }
      return { verb, account, scopes, ...present({ url: url?.replace(/\/$/, '') }) };
    }
    case 'revoke': {
      const [id = ''] = words;
      // The shell's history would contain the whole key, so the error warns about it.
      if (/^ow_live_[0-9A-Za-z]+_/.test(id)) problems.push('revoke takes the id of a key, not the key');
      else if (!/^[\w-]{1,64}$/.test(id)) problems.push('revoke takes the id of a key, as `list` shows it');
      return { verb, id };
    }
    case 'quota':
      return { verb, account: readName(given, 'account'), change: readLimits(given) };
    case 'accounts':
    case 'sealed':
    case 'reseal':
      return { verb };
  }
}

/** The text of the option; empty when it is, with a problem, invalid. */
function readName({ texts, problems }: Arguments, option: 'account' | 'name'): string {
  const text = texts.get(option)?.trim() ?? '';
  if (isName(text)) return text;
  problems.push(
    text === ''
      ? `--${option} must not be empty`
      : `--${option} must have at most ${MAX_NAME_LENGTH} characters, none of them control characters`,
  );
  return '';
}

function readScopes({ texts, problems }: Arguments): Scope[] {
  const asked = (texts.get('scopes') ?? SCOPES.join(',')).split(',').map((scope) => scope.trim());
  const unknown = asked.filter((scope) => !SCOPES.some((each) => each === scope));
  for (const scope of unknown) problems.push(`--scopes: ${scope || '(empty)'} is not one of ${SCOPES.join(', ')}`);
  return SCOPES.filter((scope) => asked.includes(scope));
}

function readExpiry(given: Arguments, nowMs: number): Date | undefined {
  const seconds = futureOf(given, 'expires', nowMs);
  if (seconds === undefined) return undefined;
  if (seconds * 1_000 <= nowMs) given.problems.push('--expires must not be in the past');
  if (seconds * 1_000 > MAX_EXPIRY_MS) given.problems.push('--expires must be before the year 10000');
  return new Date(seconds * 1_000);
}

function readLimits({ texts, problems }: Arguments): Partial<AccountQuotas> {
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
