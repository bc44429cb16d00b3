import { urlOwner } from '../../domain/chat/chat-url.ts';
import { headersOwner } from '../../domain/webhooks/headers.ts';
import { idempotencyOwner } from './idempotency.ts';

/** The functions of the secret box that the store needs. */
export interface Sealer {
  /** The ids of its keys; the first key seals. */
  readonly kids: readonly string[];
  seal(plain: string, owner: string, kid?: string): string;
  open(sealed: string, owner: string): string;
}

/** A column with values of the secret box. */
export interface SealedColumn {
  readonly table: string;
  readonly column: string;
  /** The primary key, and for each of its columns a value below all others. */
  readonly key: readonly { readonly name: string; readonly type: string; readonly first: string }[];
  /** The columns of a row that its owner is made of. */
  readonly ownerColumns: readonly string[];
  readonly ownerOf: (columns: readonly string[]) => string;
}

/** The owner of the one value of `key_check`. */
export const KEY_CHECK_OWNER = 'key-check';

const WEBHOOK = {
  table: 'webhook_subscription',
  key: [{ name: 'pk', type: 'bigint', first: '0' }],
  ownerColumns: ['id'],
  ownerOf: ([id = '']: readonly string[]) => id,
} as const;

/** Every column with sealed values that must stay readable. A test compares it with the schema. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { ...WEBHOOK, column: 'sealed_secret' },
  { ...WEBHOOK, column: 'previous_sealed_secret' },
  { ...WEBHOOK, column: 'sealed_headers', ownerOf: ([id = '']) => headersOwner(id) },
  { ...WEBHOOK, column: 'sealed_url', ownerOf: ([id = '']) => urlOwner(id) },
  {
    table: 'idempotency_key',
    column: 'sealed',
    key: [
      { name: 'account_id', type: 'bigint', first: '0' },
      { name: 'key', type: 'text', first: '' },
    ],
    ownerColumns: ['account_id', 'key'],
    ownerOf: ([accountId = '', key = '']) => idempotencyOwner(accountId, key),
  },
  {
    table: 'key_check',
    column: 'sealed',
    key: [{ name: 'id', type: 'smallint', first: '0' }],
    ownerColumns: [],
    ownerOf: () => KEY_CHECK_OWNER,
  },
];

/** SQL of the id of the key that sealed a value; empty for an emptied value. The indexes of the columns have the same expression. */
export function kidOf(column: string): string {
  return `split_part(${column}, '.', 2)`;
}
