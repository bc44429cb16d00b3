import type { Scope } from '../../src/domain/values/api-key.ts';
import { issueSignInLink, LINK_PATH } from '../../src/store/accounts/sign-in-links.ts';
import type { Database } from '../../src/store/db/tx.ts';
import { recordCommand, userName } from '../recorded.ts';

interface LinkWish {
  /** Created when absent. */
  account: string;
  scopes: readonly Scope[];
  /** The address of the console, without a slash at its end. */
  base: string;
}

/** Makes a sign-in link, records it in the audit trail, and returns its address. */
export async function makeSignInLink(
  db: Database,
  { account, scopes, base }: LinkWish,
): Promise<{ url: string; expiresAt: Date }> {
  const { token, expiresAt } = await db.transaction(async (tx) => {
    const issued = await issueSignInLink(tx, { accountName: account, scopes, issuedBy: userName() }, Date.now());
    const detail = `a sign-in link with the scopes ${scopes.join(', ')}`;
    await recordCommand(tx, { action: 'key.link', subject: `account ${account}`, detail });
    return issued;
  });
  return { url: `${base}${LINK_PATH}/${token}`, expiresAt };
}
