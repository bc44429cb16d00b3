import { EntitySchema } from 'typeorm';

/** A sign-in to the console with an API key. */
export interface ConsoleSessionRow {
  tokenHash: Buffer;
  keyId: string;
  address: string;
  createdAt: Date;
  expiresAt: Date;
  /** The result of the last action until a page has shown it. */
  flash: string | null;
}

export const ConsoleSessionEntity = new EntitySchema<ConsoleSessionRow>({
  name: 'console_session',
  columns: {
    tokenHash: { type: 'bytea', name: 'token_hash', primary: true },
    keyId: { type: 'text', name: 'key_id' },
    address: { type: 'text' },
    createdAt: { type: 'timestamptz', name: 'created_at' },
    expiresAt: { type: 'timestamptz', name: 'expires_at' },
    flash: { type: 'text', nullable: true },
  },
});
