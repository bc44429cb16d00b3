import { print } from '../cli/output.ts';
import { OddswireError } from '../src/domain/values/errors.ts';
import { createApiKey, revokeApiKey } from '../src/store/accounts/accounts.ts';
import { listAccounts, listApiKeys } from '../src/store/accounts/key-lists.ts';
import { type AccountQuotas, readAccountQuotas, setAccountQuotas } from '../src/store/accounts/quotas.ts';
import type { Database } from '../src/store/db/tx.ts';
import { KEYS_OPTIONS, KEYS_USAGE, type KeysOptions, parseKeysArguments } from './keys/arguments.ts';
import { makeSignInLink } from './keys/link.ts';
import { accountsJson, accountsText, keysJson, keysText, quotasJson, quotasText } from './keys/report.ts';
import { keyRingOf, resealWith, showSealed } from './keys/sealed.ts';
import { type CommandContext, operatorCommand } from './operator-command.ts';
import { recordCommand } from './recorded.ts';

/** `oddswire keys`: the API keys, their accounts and their limits, and the key ring of sealed values. */
export const command = operatorCommand<KeysOptions>({
  name: 'keys',
  usage: KEYS_USAGE,
  verbs: Object.keys(KEYS_OPTIONS),
  options: Object.assign({}, ...Object.values(KEYS_OPTIONS)),
  parse: (argv) => parseKeysArguments(argv, Date.now()),
  async run(options, context) {
    const { verb, json } = options;
    if (verb === 'sealed') return showSealed(context.db, json);
    if (verb === 'reseal') return resealWith(await keyRingOf(context), context.db, json);
    if (verb === 'link') return link(options, context);
    await print(`${(await answer(options, context.db)).trimEnd()}\n`);
    return 0;
  },
});

async function answer(
  options: Exclude<KeysOptions, { verb: 'sealed' | 'reseal' | 'link' }>,
  db: Database,
): Promise<string> {
  const { json } = options;
  switch (options.verb) {
    case 'create':
      return create(options, db);
    case 'list': {
      const keys = await listApiKeys(db, options.account);
      return (json ? keysJson : keysText)(keys, Date.now());
    }
    case 'revoke': {
      const { id } = options;
      const isRevoked = await db.transaction(async (tx) => {
        if (!(await revokeApiKey(tx, id))) return false;
        await recordCommand(tx, { action: 'key.revoke', subject: `key ${id}` });
        return true;
      });
      if (!isRevoked) throw new OddswireError('no_such_key', `no key has the id ${id}`);
      return json ? JSON.stringify({ id: options.id, revoked: true }) : `revoked ${options.id}`;
    }
    case 'accounts': {
      const accounts = await listAccounts(db);
      return (json ? accountsJson : accountsText)(accounts);
    }
    case 'quota': {
      const { account, change } = options;
      const isChange = Object.keys(change).length > 0;
      const quotas = await (isChange ? setQuotas(db, account, change) : readAccountQuotas(db, account));
      if (quotas === null) throw new OddswireError('no_such_account', `no account has the name ${account}`);
      return json ? quotasJson(account, quotas) : quotasText(quotas);
    }
  }
}

function setQuotas(db: Database, account: string, change: Partial<AccountQuotas>): Promise<AccountQuotas | null> {
  return db.transaction(async (tx) => {
    const quotas = await setAccountQuotas(tx, account, change);
    const limits = Object.entries(change).map(([limit, value]) => `${limit} ${value ?? 'default'}`);
    if (quotas !== null)
      await recordCommand(tx, { action: 'account.limits', subject: `account ${account}`, detail: limits.join(', ') });
    return quotas;
  });
}

/** Prints only the key on stdout, so that a script can read it, and its description on stderr. */
async function create(options: KeysOptions & { verb: 'create' }, db: Database): Promise<string> {
  const { account, name, scopes, expiresAt, json } = options;
  const request = { accountName: account, name, scopes, ...(expiresAt !== undefined && { expiresAt }) };
  const made = await db.transaction(async (tx) => {
    const created = await createApiKey(tx, request);
    const detail = `key ${created.id}: ${scopes.join(', ')}`;
    await recordCommand(tx, { action: 'key.create', subject: `account ${account}`, detail });
    return created;
  });
  const until = expiresAt === undefined ? 'never expires' : `expires ${expiresAt.toISOString()}`;
  process.stderr.write(`key ${made.id} of ${account}: ${scopes.join(', ')}; ${until}\n`);
  process.stderr.write('the key is shown only once and not stored: save it now\n');
  if (!json) return made.key;
  return JSON.stringify({ id: made.id, key: made.key, account, name, scopes, expires_at: expiresAt ?? null });
}

/** Prints only the address on stdout, and its description on stderr. */
async function link(options: KeysOptions & { verb: 'link' }, { db, config }: CommandContext): Promise<number> {
  const { account, scopes, json } = options;
  const { publicUrl } = config.ops;
  const base = options.url ?? publicUrl ?? `http://${config.http.host}:${config.http.port}`;
  const { url, expiresAt } = await makeSignInLink(db, { account, scopes, base });
  process.stderr.write(`a sign-in to ${account}: ${scopes.join(', ')}; works once, until ${expiresAt.toISOString()}\n`);
  await print(`${json ? JSON.stringify({ url, account, scopes, expires_at: expiresAt }) : url}\n`);
  return 0;
}
