import { EntitySchema } from 'typeorm';

/** A login of the operator pages. */
export interface OpsSessionRow {
  tokenHash: Buffer;
  role: 'viewer' | 'operator';
  /** The operator's name. Null in rows of a release without names. */
  actor: string | null;
  /** The fingerprint of the password at the login. */
  passwordFingerprint: Buffer;
  address: string;
  createdAt: Date;
  lastSeenAt: Date;
  expiresAt: Date;
  /** The result of the last action until a page has shown it. */
  flash: string | null;
}

export const OpsSessionEntity = new EntitySchema<OpsSessionRow>({
  name: 'ops_session',
  columns: {
    tokenHash: { type: 'bytea', name: 'token_hash', primary: true },
    role: { type: 'text' },
    actor: { type: 'text', nullable: true },
    passwordFingerprint: { type: 'bytea', name: 'password_fingerprint' },
    address: { type: 'text' },
    createdAt: { type: 'timestamptz', name: 'created_at' },
    lastSeenAt: { type: 'timestamptz', name: 'last_seen_at' },
    expiresAt: { type: 'timestamptz', name: 'expires_at' },
    flash: { type: 'text', nullable: true },
  },
});
