import { createHmac } from 'node:crypto';
import { isPassword } from '../../../../src/domain/values/password.ts';
import type { StoredOperatorSession } from '../../../../src/store/accounts/sessions.ts';
import type { Queryable } from '../../../../src/store/db/tx.ts';
import {
  CONFIGURED_NAMES,
  findOperator,
  isConfiguredName,
  OPERATOR_ROLES,
  type OperatorRole,
} from '../../../../src/store/ops/operators.ts';
import { isSameText } from '../../kit/session.ts';

/** The passwords of the configuration by role; a role without one has no such login. */
export type OpsPasswords = Readonly<Partial<Record<OperatorRole, string>>>;

interface CredentialOptions {
  passwords: OpsPasswords;
  /** The key of fingerprints, at least 32 bytes. */
  sessionKey: Uint8Array;
  /** The stored form of no password. */
  noPassword: string;
}

/** A login that exists. */
export interface Credential {
  name: string;
  role: OperatorRole;
  /** Identifies the password without revealing it. A session ends when this differs from the session's copy. */
  fingerprint: Buffer;
  isPassword(offered: string): boolean | Promise<boolean>;
}

/** The logins that a name means. An empty name means the passwords of the configuration. */
export async function credentialsOf(db: Queryable, options: CredentialOptions, name: string): Promise<Credential[]> {
  const configured = OPERATOR_ROLES.filter((role) => name === '' || name === CONFIGURED_NAMES[role]);
  if (configured.length > 0) return configured.flatMap((role) => configuredCredential(options, role) ?? []);
  const stored = await findOperator(db, name);
  if (stored === null) return [];
  const { role, passwordHash } = stored;
  const fingerprint = fingerprintOf(options.sessionKey, `stored:${name}:${passwordHash}`);
  return [{ name, role, fingerprint, isPassword: (offered) => isPassword(offered, passwordHash) }];
}

/**
 * The login with this password, or null. A failure costs one scrypt for every name, so that its time does not reveal the names, and
 * guesses at the configured passwords are as slow as others.
 */
export async function matchCredential(
  { noPassword }: Pick<CredentialOptions, 'noPassword'>,
  credentials: readonly Credential[],
  offered: string,
): Promise<Credential | null> {
  for (const credential of credentials) if (await credential.isPassword(offered)) return credential;
  if (credentials.every(({ name }) => isConfiguredName(name))) await isPassword(offered, noPassword);
  return null;
}

/** The present name and role of a session's operator, or null when the login was removed or its password changed. */
export function operatorOfSession(
  options: CredentialOptions,
  session: StoredOperatorSession,
): { name: string; role: OperatorRole } | null {
  const { actor, operatorRole, operatorPasswordHash } = session;
  if (actor !== null && operatorRole !== null && operatorPasswordHash !== null) {
    const fingerprint = fingerprintOf(options.sessionKey, `stored:${actor}:${operatorPasswordHash}`);
    return isSame(fingerprint, session.passwordFingerprint) ? { name: actor, role: operatorRole } : null;
  }
  // A session of an older release has no name.
  if (actor !== null && !isConfiguredName(actor)) return null;
  const credential = configuredCredential(options, session.role);
  return credential && isSame(credential.fingerprint, session.passwordFingerprint)
    ? { name: credential.name, role: credential.role }
    : null;
}

function configuredCredential({ passwords, sessionKey }: CredentialOptions, role: OperatorRole): Credential | null {
  const password = passwords[role];
  if (password === undefined) return null;
  return {
    name: CONFIGURED_NAMES[role],
    role,
    fingerprint: fingerprintOf(sessionKey, `${role}:${password}`),
    isPassword: (offered) => isSameText(password, offered),
  };
}

function fingerprintOf(key: Uint8Array, secret: string): Buffer {
  return createHmac('sha256', key).update(secret, 'utf8').digest();
}

function isSame(a: Buffer, b: Buffer): boolean {
  return isSameText(a.toString('hex'), b.toString('hex'));
}
