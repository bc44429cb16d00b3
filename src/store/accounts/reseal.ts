import { type Database, type Queryable, type Statement, sql } from '../db/tx.ts';
import { kidOf, SEALED_COLUMNS, type SealedColumn, type Sealer } from './key-ring.ts';

/** Rows per transaction. */
const BATCH = 500;

/** The rows of a column that one key sealed. */
export interface SealedCount {
  kid: string;
  table: string;
  column: string;
  rows: number;
}

const COUNT = sql(
  'count_sealed',
  `${SEALED_COLUMNS.map(
    ({ table, column }) =>
      `SELECT ${kidOf(column)} AS kid, '${table}' AS "table", '${column}' AS "column", count(*)::int AS rows
       FROM ${table} WHERE ${kidOf(column)} <> '' GROUP BY 1`,
  ).join(' UNION ALL ')} ORDER BY 1, 2, 3`,
);

/** Counts all sealed values by key and column. */
export function countSealed(db: Queryable): Promise<SealedCount[]> {
  return db.query<SealedCount>(COUNT);
}

/** The result of one batch. */
interface ResealedBatch {
  table: string;
  column: string;
  resealed: number;
  /** Values that the ring cannot open. They stay as they are. */
  unopened: number;
}

/**
 * Seals every value of another key with the first key of the ring, batch after batch in the order of the primary keys. It keeps no
 * state: a second run continues after an end anywhere, and changes nothing after a whole run. A value that changes meanwhile is
 * skipped, because the process that changed it sealed it.
 */
export async function* resealAll(db: Database, box: Sealer): AsyncGenerator<ResealedBatch> {
  for (const column of SEALED_COLUMNS) yield* resealColumn(db, box, column);
}

interface SealedRow {
  key: string[];
  ownerColumns: string[];
  sealed: string;
}

async function* resealColumn(db: Database, box: Sealer, column: SealedColumn): AsyncGenerator<ResealedBatch> {
  const { select, update } = statementsOf(column);
  let after = column.key.map(({ first }) => first);
  for (;;) {
    const rows = await db.query<SealedRow>(select, [box.kids[0], ...after]);
    const last = rows.at(-1);
    if (last === undefined) return;
    after = last.key;
    const opened = rows.flatMap((row) => sealAgain(box, column, row) ?? []);
    const updated = await db.transaction((tx) =>
      tx.query(update, [
        ...column.key.map((_, index) => opened.map(({ key }) => key[index])),
        opened.map(({ sealed }) => sealed),
        opened.map(({ resealed }) => resealed),
      ]),
    );
    const { table, column: name } = column;
    yield { table, column: name, resealed: updated.length, unopened: rows.length - opened.length };
  }
}

/** Undefined for a value that the ring cannot open: its key is missing, or it is corrupt. `countSealed` shows it afterwards. */
function sealAgain(
  box: Sealer,
  { ownerOf }: SealedColumn,
  row: SealedRow,
): (SealedRow & { resealed: string }) | undefined {
  const owner = ownerOf(row.ownerColumns);
  let plain: string;
  try {
    plain = box.open(row.sealed, owner);
  } catch {
    return undefined;
  }
  return { ...row, resealed: box.seal(plain, owner) };
}

function statementsOf({ table, column, key, ownerColumns }: SealedColumn): { select: Statement; update: Statement } {
  const names = key.map(({ name }) => name).join(', ');
  const after = key.map(({ type }, index) => `$${index + 2}::${type}`).join(', ');
  const texts = (columns: readonly string[]) => `ARRAY[${columns.map((name) => `${name}::text`).join(', ')}]::text[]`;
  const select = sql(
    `select_sealed_${table}_${column}`,
    `SELECT ${texts(key.map(({ name }) => name))} AS key, ${texts(ownerColumns)} AS owner_columns, ${column} AS sealed FROM ${table}
     WHERE (${names}) > (${after}) AND ${kidOf(column)} NOT IN ('', $1) ORDER BY ${names} LIMIT ${BATCH}`,
  );
  const given = key.map(({ type }, index) => `$${index + 1}::${type}[]`).join(', ');
  const isRow = key.map(({ name }) => `t.${name} = n.${name}`).join(' AND ');
  const [old, resealed] = [key.length + 1, key.length + 2];
  const update = sql(
    `reseal_${table}_${column}`,
    // Locks in the order of the key, as other statements do.
    `WITH n AS (SELECT * FROM unnest(${given}, $${old}::text[], $${resealed}::text[]) AS n (${names}, old, resealed)),
     locked AS MATERIALIZED (
       SELECT ${key.map(({ name }) => `t.${name}`).join(', ')} FROM ${table} t JOIN n ON ${isRow} AND t.${column} = n.old
       ORDER BY ${key.map(({ name }) => `t.${name}`).join(', ')} FOR NO KEY UPDATE OF t)
     UPDATE ${table} t SET ${column} = n.resealed FROM n JOIN locked USING (${names})
     WHERE ${isRow} AND t.${column} = n.old RETURNING 1`,
  );
  return { select, update };
}
