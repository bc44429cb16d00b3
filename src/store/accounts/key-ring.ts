import { urlOwner } from '../../domain/chat/chat-url.ts';
import { OddswireError } from '../../domain/values/errors.ts';
import { headersOwner } from '../../domain/webhooks/headers.ts';
import { type Queryable, sql } from '../db/tx.ts';
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
const KEY_CHECK_OWNER = 'key-check';

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

const PLAIN = 'oddswire';

const INSERT = sql('insert_key_check', 'INSERT INTO key_check (sealed) VALUES ($1) ON CONFLICT DO NOTHING');
const SELECT = sql('select_key_check', 'SELECT sealed FROM key_check');

/** Stored values are sealed with keys that this ring lacks. `kids` names all of them. */
export class KeysMissingError extends OddswireError {
  readonly kids: readonly string[];

  constructor(uses: readonly KeyUse[]) {
    const kids = [...new Set(uses.map(({ kid }) => kid))];
    const tables = (kid: string) => [...new Set(uses.filter((use) => use.kid === kid).map((use) => use.place))];
    const list = kids.map((kid) => `"${kid}" (${tables(kid).join(', ')})`).join(', ');
    super('keys_missing', `the ring lacks keys that stored values are sealed with: ${list}`);
    this.kids = kids;
  }
}

/** A key of the ring has other bytes than the key of the same id that was used before. */
export class KeyDiffersError extends OddswireError {
  readonly kid: string;

  constructor(kid: string, cause: unknown) {
    super('key_differs', `the key "${kid}" has other bytes than the key of this id in \`ring_key\``, { cause });
    this.kid = kid;
  }
}

/**
 * Checks that this ring can open every stored value, and that its keys are the keys of the other processes. Call it inside the boot
 * lock. Stores a check value for each key that is new.
 * @throws KeysMissingError, KeyDiffersError, or the error of `open` for the check value of an older release
 */
export async function checkKeyRing(db: Queryable, box: Sealer): Promise<void> {
  await db.query(INSERT, [box.seal(PLAIN, KEY_CHECK_OWNER)]);
  const missing = (await keysInUse(db)).filter(({ kid }) => !box.kids.includes(kid));
  if (missing.length > 0) throw new KeysMissingError(missing);
  const [row] = await db.query<{ sealed: string }>(SELECT);
  box.open(row?.sealed ?? '', KEY_CHECK_OWNER);
  await checkRingKeys(db, box);
}

const INSERT_KEYS = sql(
  'insert_ring_keys',
  `INSERT INTO ring_key (kid, sealed) SELECT * FROM unnest($1::text[], $2::text[]) ORDER BY 1 ON CONFLICT DO NOTHING`,
);
const SELECT_KEYS = sql('select_ring_keys', 'SELECT kid, sealed FROM ring_key WHERE kid = ANY ($1::text[])');

/** Checks that each key of the ring has the bytes of the first process that had it. */
export async function checkRingKeys(db: Queryable, box: Sealer): Promise<void> {
  await db.query(INSERT_KEYS, [box.kids, box.kids.map((kid) => box.seal(PLAIN, ringKeyOwner(kid), kid))]);
  const [differing] = await differingKeys(db, box);
  if (differing) throw differing;
}

/** The keys of the ring that have other bytes than their check values, without a write. */
export async function differingKeys(db: Queryable, box: Sealer): Promise<KeyDiffersError[]> {
  const stored = await db.query<{ kid: string; sealed: string }>(SELECT_KEYS, [box.kids]);
  return stored.flatMap(({ kid, sealed }) => {
    try {
      box.open(sealed, ringKeyOwner(kid));
      return [];
    } catch (error) {
      return [new KeyDiffersError(kid, error)];
    }
  });
}

function ringKeyOwner(kid: string): string {
  return `ring-key ${kid}`;
}

interface KeyUse {
  kid: string;
  /** `table.column`. */
  place: string;
}

/** A skip scan: one step along the index per different key, independent of the number of rows. */
function skipScan({ table, column }: SealedColumn, name: string): string {
  const next = (after: string) =>
    `(SELECT ${kidOf(column)} AS kid FROM ${table} WHERE ${kidOf(column)} > ${after} ORDER BY 1 LIMIT 1)`;
  return `${name} AS (${next("''")} UNION ALL SELECT ${next('seen.kid')} FROM ${name} AS seen WHERE seen.kid IS NOT NULL)`;
}

const IN_USE = sql(
  'keys_in_use',
  `WITH RECURSIVE ${SEALED_COLUMNS.map((column, index) => skipScan(column, `kid_${index}`)).join(', ')}
   SELECT * FROM (${SEALED_COLUMNS.map(
     ({ table, column }, index) => `SELECT kid, '${table}.${column}' AS place FROM kid_${index}`,
   ).join(' UNION ALL ')}) found WHERE kid IS NOT NULL ORDER BY 1, 2`,
);

/** The keys with which stored values are sealed, by column. */
export function keysInUse(db: Queryable): Promise<KeyUse[]> {
  return db.query<KeyUse>(IN_USE);
}
