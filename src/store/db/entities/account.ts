import { EntitySchema } from 'typeorm';

/** The owner of keys, subscriptions and alerts. */
interface AccountRow {
  /** bigint as text. */
  id: string;
  name: string;
  createdAt: Date;
}

export const AccountEntity = new EntitySchema<AccountRow>({
  name: 'account',
  columns: {
    id: { type: 'bigint', primary: true, generated: 'increment' },
    name: { type: 'text', unique: true },
    createdAt: { type: 'timestamptz', name: 'created_at', createDate: true },
  },
});
