import { type Database, sql } from '../../src/store/db/tx.ts';
import { isKeptTable } from './figures.ts';
import { type Figures, procStatus } from './process-samples.ts';

const CONNECTIONS = sql(
  'soak_connections',
  `SELECT application_name AS name, pid, extract(epoch FROM clock_timestamp() - xact_start)::float AS seconds
   FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
);
/** Partitions count for their table. Dead rows are an estimate of Postgres, updated at the end of transactions. */
const TABLES = sql(
  'soak_tables',
  `SELECT n.nspname AS schema, coalesce(p.relname, c.relname) AS name,
     sum(pg_table_size(c.oid))::float AS bytes, sum(pg_indexes_size(c.oid))::float AS index_bytes,
     coalesce(sum(s.n_live_tup), 0)::float AS live, coalesce(sum(s.n_dead_tup), 0)::float AS dead,
     count(*) FILTER (WHERE p.oid IS NOT NULL)::int AS partitions
   FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent
   LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
   WHERE c.relkind = 'r' AND n.nspname IN ('public', 'bullmq') GROUP BY 1, 2`,
);
const SERVER = sql(
  'soak_server',
  `SELECT d.temp_files::float AS temp_files, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float AS wal_bytes,
     (SELECT count(*)::float FROM trade WHERE token_id NOT IN (SELECT id FROM token WHERE mint LIKE 'soak-old-%')) AS trades,
     (SELECT count(*)::float FROM delivery WHERE status = 'pending') AS pending
   FROM pg_stat_database d WHERE d.datname = current_database()`,
);
const QUEUE_ROWS = ['job', 'event', 'dedup', 'scheduler', 'metrics', 'job_log'].map((table) => ({
  table,
  statement: sql(`soak_queue_${table}`, `SELECT count(*)::float AS rows FROM bullmq.${table}`),
}));

interface Table {
  schema: string;
  name: string;
  bytes: number;
  indexBytes: number;
  live: number;
  dead: number;
  partitions: number;
}

/** The size and cost of Postgres: connections, memory, tables, dead rows. */
export async function sampleDatabase(db: Database): Promise<Figures> {
  const [connections, tables, [server]] = await Promise.all([
    db.query<{ name: string; pid: number; seconds: number | null }>(CONNECTIONS),
    db.query<Table>(TABLES),
    db.query<{ tempFiles: number; walBytes: number; trades: number; pending: number }>(SERVER),
  ]);
  if (!server) throw new Error('no statistics of this database');
  // The connections of the soak itself are irrelevant.
  const others = connections.filter(({ name }) => name.startsWith('oddswire-') && name !== 'oddswire-test');
  return {
    ...countByName(others.map(({ name }) => name)),
    'postgres: oldest transaction': Math.max(0, ...others.map(({ seconds }) => seconds ?? 0)),
    'postgres: temporary files': server.tempFiles,
    'postgres: WAL': server.walBytes,
    'trades stored': server.trades,
    'deliveries pending': server.pending,
    ...(await backendMemory(others.map(({ pid }) => pid))),
    ...tableFigures(tables.filter(({ schema }) => schema === 'public')),
    ...(await queueFigures(
      db,
      tables.filter(({ schema }) => schema === 'bullmq'),
    )),
  };
}

function countByName(names: readonly string[]): Figures {
  const figures: Figures = {};
  for (const name of names) {
    const figure = `postgres: connections of ${name}`;
    figures[figure] = (figures[figure] ?? 0) + 1;
  }
  return { ...figures, 'postgres: connections': names.length };
}

/** Only when the server is on this machine. A backend that ended meanwhile has no memory. */
async function backendMemory(pids: readonly number[]): Promise<Figures> {
  const own = await Promise.all(
    pids.map((pid) =>
      procStatus(pid).then(
        ({ ownBytes }) => ownBytes,
        () => 0,
      ),
    ),
  );
  const bytes = own.reduce((total, each) => total + each, 0);
  return bytes > 0 ? { 'postgres: memory of backends': bytes } : {};
}

function tableFigures(tables: readonly Table[]): Figures {
  const figures: Figures = {};
  for (const { name, bytes, indexBytes, partitions } of tables) {
    figures[`table ${name}`] = bytes;
    figures[`indexes ${name}`] = indexBytes;
    if (partitions > 0) figures[`partitions of ${name}`] = partitions;
  }
  const kept = tables.filter(({ name }) => isKeptTable(name));
  const total = (of: readonly Table[], field: 'live' | 'dead') => of.reduce((sum, table) => sum + table[field], 0);
  const others = tables.filter(({ name }) => !isKeptTable(name));
  figures['dead rows of tables without history'] = total(others, 'dead');
  figures['dead rows of history'] = (100 * total(kept, 'dead')) / Math.max(1, total(kept, 'live'));
  return figures;
}

async function queueFigures(db: Database, tables: readonly Table[]): Promise<Figures> {
  if (tables.every(({ live }) => live === 0)) return {};
  const figures: Figures = {};
  for (const { table, statement } of QUEUE_ROWS) {
    figures[`queue rows: ${table}`] = (await db.query<{ rows: number }>(statement))[0]?.rows ?? 0;
  }
  figures['queue store: size'] = tables.reduce((sum, { bytes, indexBytes }) => sum + bytes + indexBytes, 0);
  return figures;
}
