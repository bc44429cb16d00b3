import { type Queryable, sql } from '../db/tx.ts';

/** The sealing functions that this module needs of the secret box. */
interface Sealer {
  seal(plain: string, aad: string): string;
  open(sealed: string, aad: string): string;
}

const PLAIN = 'oddswire';
const OWNER = 'key-check';

const INSERT = sql('insert_key_check', 'INSERT INTO key_check (sealed) VALUES ($1) ON CONFLICT DO NOTHING');
const SELECT = sql('select_key_check', 'SELECT sealed FROM key_check');

/**
 * Opens the value that the first process sealed, or seals it. Call it inside the boot lock.
 * @throws the error of `open` when this key ring did not seal the secrets of the database.
 */
export async function checkKeyRing(db: Queryable, box: Sealer): Promise<void> {
  await db.query(INSERT, [box.seal(PLAIN, OWNER)]);
  const [row] = await db.query<{ sealed: string }>(SELECT);
  box.open(row?.sealed ?? '', OWNER);
}
