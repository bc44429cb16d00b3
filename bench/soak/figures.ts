import type { FlatRule } from './slopes.ts';

const MIB = 1024 * 1024;

export type Unit = 'bytes' | 'count' | 'ms' | 's' | '%' | '/s';

/**
 * The expected behaviour of a figure. `flat`: the run fails when it grows. `kept`: it grows with retained data, so it is
 * reported per 1,000 trades. `shown`: reported only.
 */
export type Expectation =
  | ({
      readonly kind: 'flat' /** Before so many seconds of run it is still filling up. */;
      readonly settleSeconds?: number;
    } & FlatRule)
  | { readonly kind: 'kept' }
  | { readonly kind: 'shown' };

export interface FigureRule {
  readonly unit: Unit;
  readonly expectation: Expectation;
}

/** Tables that hold history: each row stays for its retention time. All other tables hold present state. */
const KEPT_TABLES = new Set([
  'trade',
  'candle',
  'snapshot',
  'price_history',
  'observation',
  'book_history',
  'market_version',
  'alert',
  'event',
  'delivery',
  'delivery_attempt',
  'idempotency_key',
  'wallet_transaction',
  'trade_history',
  'ops_throughput',
  'journal',
  'publish_mark',
]);

export function isKeptTable(table: string): boolean {
  return KEPT_TABLES.has(table);
}

/** BullMQ keeps completed jobs for 300 s (src/queues/port.ts); vacuum may be a minute behind. */
const QUEUE_SETTLE_SECONDS = 390;

/** The first minutes compile code, open pools and read the catalog: their latency falls or rises with the load of that work. */
const LATENCY_SETTLE_SECONDS = 120;

const flat = (floor: number, share: number, reduction: FlatRule['reduction'] = 'middle', settleSeconds = 0) =>
  ({ kind: 'flat', reduction, floor, share, settleSeconds }) as const;
/** Rises for a minute, then falls again. */
const everyMinute = (floor: number, share: number) => ({ ...flat(floor, share, 'least'), toothSeconds: 60 }) as const;
/** Autovacuum runs once a minute (Postgres' `autovacuum_naptime`), and on small tables only after some thousand changes. */
const vacuumed = everyMinute;
/** Pools open connections under load, and close a connection after a minute without use (src/store/db/data-source.ts). */
const pooled = everyMinute;
const KEPT = { kind: 'kept' } as const;
const SHOWN = { kind: 'shown' } as const;

/**
 * Figures by their names; the first match counts. A floor is the variation of the figure in a run without a fault: a pool that
 * opens its last connections, V8 that compiles one more function, a half-full page of a table.
 */
const RULES: readonly { readonly name: RegExp; readonly unit: Unit; readonly expectation: Expectation }[] = [
  { name: /^runner: /, unit: 'bytes', expectation: SHOWN },
  // After a forced collection this is reachable memory. Code and its feedback still grow a little in the first hour.
  { name: /^\w+: live heap$/, unit: 'bytes', expectation: flat(3 * MIB, 0.06) },
  // malloc and V8 keep freed memory for minutes: only the low points show the need.
  { name: /^\w+: resident$/, unit: 'bytes', expectation: everyMinute(16 * MIB, 0.1) },
  { name: /^\w+: heap used$/, unit: 'bytes', expectation: SHOWN },
  { name: /^\w+: event loop p90$/, unit: 'ms', expectation: flat(15, 0.5, 'middle', LATENCY_SETTLE_SECONDS) },
  { name: /^\w+: (descriptors|sockets)$/, unit: 'count', expectation: pooled(6, 0.15) },
  { name: /^\w+: threads$/, unit: 'count', expectation: flat(2, 0.1) },
  { name: /^\w+: handles$/, unit: 'count', expectation: pooled(6, 0.15) },
  { name: /^postgres: connections/, unit: 'count', expectation: pooled(4, 0.15) },
  // Each connection caches its plans and catalog rows: more with every new partition, freed with the connection.
  { name: /^postgres: memory of backends$/, unit: 'bytes', expectation: pooled(24 * MIB, 0.15) },
  { name: /^postgres: oldest transaction$/, unit: 's', expectation: flat(5, 0.5) },
  { name: /^postgres: temporary files$/, unit: 'count', expectation: SHOWN },
  { name: /^postgres: WAL$/, unit: 'bytes', expectation: KEPT },
  { name: /^dead rows of tables without history$/, unit: 'count', expectation: vacuumed(8_000, 0.4) },
  { name: /^dead rows of history$/, unit: '%', expectation: vacuumed(6, 0.3) },
  // The pages of the queue store are reused after a vacuum.
  { name: /^queue rows: /, unit: 'count', expectation: flat(1_000, 0.2, 'middle', QUEUE_SETTLE_SECONDS) },
  { name: /^queue store: size$/, unit: 'bytes', expectation: flat(4 * MIB, 0.2, 'middle', QUEUE_SETTLE_SECONDS) },
  { name: /^queue store: memory$/, unit: 'bytes', expectation: flat(3 * MIB, 0.15, 'middle', QUEUE_SETTLE_SECONDS) },
  { name: /^queue store: clients$/, unit: 'count', expectation: flat(4, 0.1) },
  { name: /^queue /, unit: 'count', expectation: flat(20, 0.5) },
  // A minute's snapshots are taken after its end (src/queues/schedules.ts): until then each changed price leaves a mark.
  { name: /^marks waiting for sample-snapshots$/, unit: 'count', expectation: everyMinute(100, 0.5) },
  { name: /^(marks|deliveries)/, unit: 'count', expectation: flat(100, 0.5, 'least') },
  { name: /^partitions of/, unit: 'count', expectation: flat(2, 0.2, 'least') },
  { name: /^rate of/, unit: '/s', expectation: SHOWN },
  { name: /^reads p50/, unit: 'ms', expectation: flat(5, 0.5, 'middle', LATENCY_SETTLE_SECONDS) },
  { name: /^reads p99/, unit: 'ms', expectation: SHOWN },
  { name: /^trades stored$/, unit: 'count', expectation: KEPT },
];

/** A page or two, or a late vacuum: a table of present state has no other reason to grow. */
const FLAT_TABLE: FigureRule = { unit: 'bytes', expectation: vacuumed(1.5 * MIB, 0.25) };
const KEPT_TABLE: FigureRule = { unit: 'bytes', expectation: KEPT };

/** The rule of a figure. @throws for a figure without a rule. */
export function ruleOf(name: string): FigureRule {
  const table = /^(?:table|indexes) (\w+)$/.exec(name)?.[1];
  if (table !== undefined) return isKeptTable(table) ? KEPT_TABLE : FLAT_TABLE;
  const rule = RULES.find((each) => each.name.test(name));
  if (!rule) throw new Error(`no rule for the figure "${name}"`);
  return rule;
}
