import { EntitySchema } from 'typeorm';
import { BIGINT } from './columns.ts';

/** An API key: its hash, never the key. */
interface ApiKeyRow {
  id: string;
  accountId: bigint;
  name: string;
  /** sha256 of the key. */
  secretHash: Buffer;
  scopes: string[];
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
}

export const ApiKeyEntity = new EntitySchema<ApiKeyRow>({
  name: 'api_key',
  columns: {
    id: { type: 'text', primary: true },
    accountId: { ...BIGINT, name: 'account_id' },
    name: { type: 'text' },
    secretHash: { type: 'bytea', name: 'secret_hash', unique: true },
    scopes: { type: 'text', array: true },
    createdAt: { type: 'timestamptz', name: 'created_at', createDate: true },
    expiresAt: { type: 'timestamptz', name: 'expires_at', nullable: true },
    revokedAt: { type: 'timestamptz', name: 'revoked_at', nullable: true },
    lastUsedAt: { type: 'timestamptz', name: 'last_used_at', nullable: true },
  },
});
