import { OddswireError } from '../src/domain/values/errors.ts';
import { createApiKey, revokeApiKey } from '../src/store/accounts/accounts.ts';
import { listAccounts, listApiKeys } from '../src/store/accounts/key-lists.ts';
import { readAccountQuotas, setAccountQuotas } from '../src/store/accounts/quotas.ts';
import type { Database } from '../src/store/db/tx.ts';
import { KEYS_USAGE, type KeysOptions, parseKeysArguments } from './keys-arguments.ts';
import { accountsJson, accountsText, keysJson, keysText, quotasJson, quotasText } from './keys-report.ts';
import { print, runOperatorCommand } from './operator-command.ts';

/** `npm run keys`: the API keys, their accounts and their limits. */
await runOperatorCommand<KeysOptions>({
  name: 'keys',
  usage: KEYS_USAGE,
  parse: (argv) => parseKeysArguments(argv, Date.now()),
  async run(options, { db }) {
    await print(`${(await answer(options, db)).trimEnd()}\n`);
    return 0;
  },
});

async function answer(options: KeysOptions, db: Database): Promise<string> {
  const { json } = options;
  switch (options.verb) {
    case 'create':
      return create(options, db);
    case 'list': {
      const keys = await listApiKeys(db, options.account);
      return (json ? keysJson : keysText)(keys, Date.now());
    }
    case 'revoke': {
      if (!(await revokeApiKey(db, options.id)))
        throw new OddswireError('no_such_key', `no key has the id ${options.id}`);
      return json ? JSON.stringify({ id: options.id, revoked: true }) : `revoked ${options.id}`;
    }
    case 'accounts': {
      const accounts = await listAccounts(db);
      return (json ? accountsJson : accountsText)(accounts);
    }
    case 'quota': {
      const { account, change } = options;
      const isChange = Object.keys(change).length > 0;
      const quotas = await (isChange ? setAccountQuotas(db, account, change) : readAccountQuotas(db, account));
      if (quotas === null) throw new OddswireError('no_such_account', `no account has the name ${account}`);
      return json ? quotasJson(account, quotas) : quotasText(quotas);
    }
  }
}

/** Prints only the key on stdout, so that a script can read it, and its description on stderr. */
async function create(options: KeysOptions & { verb: 'create' }, db: Database): Promise<string> {
  const { account, name, scopes, expiresAt, json } = options;
  const made = await createApiKey(db, {
    accountName: account,
    name,
    scopes,
    ...(expiresAt !== undefined && { expiresAt }),
  });
  const until = expiresAt === undefined ? 'never expires' : `expires ${expiresAt.toISOString()}`;
  process.stderr.write(`key ${made.id} of ${account}: ${scopes.join(', ')}; ${until}\n`);
  process.stderr.write('the key is shown only once and not stored: save it now\n');
  if (!json) return made.key;
  return JSON.stringify({ id: made.id, key: made.key, account, name, scopes, expires_at: expiresAt ?? null });
}
