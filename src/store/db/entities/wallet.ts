import { EntitySchema } from 'typeorm';
import { BIGINT } from './columns.ts';

/** A watch of an account on a wallet. An ended one stays for its events. */
interface WalletRow {
  pk: bigint;
  id: string;
  accountId: bigint;
  /** The wallet itself, which several accounts may watch. */
  watchedPk: bigint;
  label: string | null;
  createdAt: Date;
  deletedAt: Date | null;
}

export const WalletEntity = new EntitySchema<WalletRow>({
  name: 'wallet',
  columns: {
    pk: { ...BIGINT, primary: true, generated: 'increment' },
    id: { type: 'text', unique: true },
    accountId: { ...BIGINT, name: 'account_id' },
    watchedPk: { ...BIGINT, name: 'watched_pk' },
    label: { type: 'text', nullable: true },
    createdAt: { type: 'timestamptz', name: 'created_at', createDate: true },
    deletedAt: { type: 'timestamptz', name: 'deleted_at', nullable: true },
  },
});
