import { POLL_JOBS } from '../../src/queues/schedules.ts';
import type { Figure } from '../support/figure.ts';
import { FACT_KINDS, type Facts } from './baselines.ts';
import type { Combination } from './combination.ts';
import type { StatementCost } from './database.ts';
import { ratesOf } from './work.ts';

/** Labels of the jobs of polls. */
const POLLS = new RegExp(`^(${POLL_JOBS.join('|')})\\b`);

/** Processes that are not part of the service. */
const OTHERS = new Set(['simulator', 'receiver']);

const factsOf = ({ trades, prices, books }: Facts) => trades + prices + books;
const totalOf = (byProcess: Readonly<Record<string, number>>) =>
  Object.entries(byProcess).reduce((sum, [name, value]) => sum + (OTHERS.has(name) ? 0 : value), 0);

/** A number with three digits, or that it is not known. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return '-';
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return value === 0 ? '0' : String(Number(value.toPrecision(3)));
}

/** Rows of texts as a Markdown table. */
export function tableOf(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [columns, ...rows];
  const widths = columns.map((_, column) => Math.max(3, ...all.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, at) => (cells[at] ?? '').padEnd(width)).join(' | ')} |`;
  return [line(columns), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

/** The numbers of a combination that are compared with the plain program. */
interface Costs {
  readonly cores: number;
  readonly facts: number;
  /** Milliseconds of CPU for each stored fact; NaN at rest. */
  readonly factMs: number;
}

function costsOf(cpu: Readonly<Record<string, number>>, facts: Facts): Costs {
  const [cores, count] = [totalOf(cpu), factsOf(facts)];
  return { cores, facts: count, factMs: count > 0 ? (1_000 * cores) / count : Number.NaN };
}

/** Milliseconds of CPU that a bare COPY of as many rows takes for each of them; NaN without rows. */
function copyMsOf({ baselines: { copySeconds }, facts }: Combination): number {
  const all = FACT_KINDS.reduce((sum, kind) => sum + facts[kind] * (copySeconds[kind] ?? 0), 0);
  return (1_000 * all) / factsOf(facts);
}

const FROM_FACTS = 100;
const FROM_MARKETS = 10_000;

/** The figures for the table at the end of the run. */
export function figuresOf(combination: Combination): Figure[] {
  const { title, asked, service, facts, baselines } = combination;
  const [own, plain] = [costsOf(service.cpu, facts), costsOf(baselines.plain.cpu, baselines.facts)];
  const cores = (costs: Costs) => `${short(costs.cores)} cores`;
  const { database } = service;
  return [
    {
      title: `${title}: CPU of all processes of oddswire with Postgres`,
      measured: cores(own),
      baseline: `plain program with Postgres ${cores(plain)}`,
      ratio: own.cores / plain.cores,
      ...(asked?.rate === 0 && asked.markets >= FROM_MARKETS && { goal: { atMost: 1.5 } }),
    },
    ...(own.facts === 0
      ? []
      : [
          {
            title: `${title}: the same for each stored trade, new price and changed book`,
            measured: `${short(own.factMs)} ms, ${short(own.facts)} facts/s`,
            baseline: `plain program ${short(plain.factMs)} ms, ${short(plain.facts)} facts/s; COPY ${short(copyMsOf(combination))} ms`,
            ratio: own.factMs / plain.factMs,
            ...((asked?.rate ?? 0) >= FROM_FACTS && { goal: { atMost: 3 } }),
          },
        ]),
    {
      title: `${title}: transactions that write, all commits, jobs`,
      measured: [database.writeTransactions, database.commits, jobsPerSecond(combination)]
        .map((rate) => `${short(rate)}/s`)
        .join(', '),
      baseline: `plain program ${short(baselines.plain.database.writeTransactions)}, ${short(baselines.plain.database.commits)}/s`,
    },
    {
      title: `${title}: write-ahead log`,
      measured: `${short(database.walBytes / 1_024)} KB/s`,
      baseline: `plain program ${short(baselines.plain.database.walBytes / 1_024)} KB/s`,
      ratio: database.walBytes / baselines.plain.database.walBytes,
    },
  ];
}

/** The same for each fact without the cost at rest of as many markets. */
export function factsBeyondRest(combination: Combination, rest: Combination): string {
  const own = (of: Combination) => costsOf(of.service.cpu, of.facts);
  const plain = ({ baselines }: Combination) => costsOf(baselines.plain.cpu, baselines.facts);
  const each = (of: (from: Combination) => Costs) => {
    const { cores, facts } = of(combination);
    return `${short((1_000 * (cores - of(rest).cores)) / facts)} ms`;
  };
  return `${combination.title}: CPU of a fact without the CPU at rest ${each(own)}, plain program ${each(plain)}`;
}

/** Without the polls, which the job `poll-venue` runs. */
function jobsPerSecond({ service }: Combination): number {
  const jobs = ratesOf(service.work, 'job_duration_seconds_count').filter(([labels]) => !POLLS.test(labels));
  return jobs.reduce((sum, [, rate]) => sum + rate, 0);
}

/** The tables of a combination, for a person. */
export function textOf(combination: Combination, top: number): string {
  const { title, queues, feeds, openMarkets, caughtUpSeconds, service, load, missing } = combination;
  const head = [
    `## ${title}: ${openMarkets} open markets, queues in ${queues}, feeds ${feeds ? 'on' : 'off'}`,
    `${short(service.seconds)} s, after the service had caught up in ${short(caughtUpSeconds)} s; load average before ${load[0]}, after ${load[1]}.`,
    ...Object.entries(missing).map(([name, reason]) => `${name} is not measured: ${reason}.`),
    ...(process.platform === 'linux' ? [] : ['CPU and memory are not measured: this system has no /proc.']),
  ];
  const parts: [string, string][] = [
    ['Stored facts per second', factTable(combination)],
    ['CPU and memory', processTable(combination)],
    ['Postgres per second', databaseTable(combination)],
    ['CPU of Postgres by session, cores', pairs('session', 'cores', service.sessions, top)],
    ['Jobs per second by name, of the metrics of all processes', jobTable(combination)],
    ['Other counters of the metrics per second', pairs('counter', 'per second', otherWork(combination), 4 * top)],
    ['Requests to the venues per second', requestTable(combination)],
    ['Scans and rows by table per second', scanTable(combination, top)],
    ['Write-ahead log', walTables(combination, top)],
    ['Statements by time', statementTable(combination, top, ({ ms, planMs }) => ms + planMs)],
    ['Statements by calls', statementTable(combination, top, ({ calls }) => calls)],
  ];
  return [head.join('\n'), ...parts.map(([name, text]) => `${name}:\n${text}`)].join('\n\n');
}

function factTable(combination: Combination): string {
  const { service, facts, baselines } = combination;
  const [own, plain] = [costsOf(service.cpu, facts), costsOf(baselines.plain.cpu, baselines.facts)];
  const row = (name: string, of: Facts, { facts: all, factMs }: Costs) => {
    return [name, ...FACT_KINDS.map((kind) => short(of[kind])), short(all), short(factMs)];
  };
  const perRow = FACT_KINDS.map((kind) => short(1_000 * (baselines.copySeconds[kind] ?? Number.NaN)));
  return tableOf(
    ['', 'trades', 'new prices', 'changed books', 'all', 'CPU ms each'],
    [
      row('oddswire', facts, own),
      row('plain program', baselines.facts, plain),
      ['COPY, CPU ms of a row', ...perRow, '', short(copyMsOf(combination))],
    ],
  );
}

function processTable({ service, baselines: { plain } }: Combination): string {
  const mb = (bytes: number | undefined) => (bytes === undefined ? '' : short(bytes / 1_048_576));
  const rows = (from: typeof service, name: string) => [name, short(from.cpu[name] ?? Number.NaN), mb(from.pss[name])];
  const names = (from: typeof service, isOther: boolean) =>
    Object.keys(from.cpu).filter((name) => OTHERS.has(name) === isOther);
  const total = (from: typeof service, name: string) => [name, short(totalOf(from.cpu)), mb(totalOf(from.pss))];
  return tableOf(
    ['process', 'cores', 'PSS MiB'],
    [
      ...names(service, false).map((name) => rows(service, name)),
      total(service, 'oddswire with Postgres'),
      ...names(service, true).map((name) => rows(service, name)),
      ...names(plain, false).map((name) => rows(plain, name)),
      total(plain, 'plain program with Postgres'),
      ...names(plain, true).map((name) => rows(plain, name)),
    ].map(([name = '', ...rest]) => [name, ...rest]),
  );
}

const TRANSACTION = /^(begin|start transaction|commit|rollback|savepoint|release)/i;

/** Statements per second: all, and the beginnings and ends of transactions. */
export function statementRates(statements: readonly StatementCost[] | undefined, seconds: number) {
  const of = (chosen: readonly StatementCost[] | undefined) =>
    chosen === undefined ? Number.NaN : chosen.reduce((sum, { calls }) => sum + calls, 0) / seconds;
  return { all: of(statements), transactions: of(statements?.filter(({ text }) => TRANSACTION.test(text))) };
}

function databaseTable(combination: Combination): string {
  const { service, facts, baselines } = combination;
  const columns = [service, baselines.plain].map(({ database, statements, seconds, wal }, at) => {
    const calls = statementRates(statements, seconds);
    const images = typeof wal === 'string' ? Number.NaN : wal.kinds.reduce((sum, kind) => sum + kind.imageBytes, 0);
    const count = factsOf(at === 0 ? facts : baselines.facts);
    return [
      database.writeTransactions,
      database.commits,
      database.rollbacks,
      calls.all,
      calls.transactions,
      database.walBytes / 1_024,
      images / seconds / 1_024,
      count > 0 ? (database.walBytes - images / seconds) / count : Number.NaN,
    ].map(short);
  });
  const names = [
    'transactions with a transaction id',
    'all commits',
    'rollbacks',
    'statements',
    'of these BEGIN, COMMIT, ROLLBACK',
    'write-ahead log, KB',
    'of these full-page images, KB',
    'write-ahead log without images, bytes for each fact',
  ];
  return tableOf(
    ['', 'oddswire', 'plain program'],
    names.map((name, at) => [name, columns[0]?.[at] ?? '', columns[1]?.[at] ?? '']),
  );
}

function jobTable(combination: Combination): string {
  const { work } = combination.service;
  const seconds = new Map(ratesOf(work, 'job_duration_seconds_sum'));
  const rows = ratesOf(work, 'job_duration_seconds_count').map(([labels, rate]) => {
    const [name = '', outcome = ''] = labels.split(' ');
    return [name, outcome, short(rate), short((1_000 * (seconds.get(name) ?? 0)) / rate)];
  });
  return tableOf(
    ['job', 'outcome', 'per second', 'mean ms'],
    [...rows, ['all without polls', '', short(jobsPerSecond(combination)), '']],
  );
}

function otherWork({ service }: Combination): Record<string, number> {
  return Object.fromEntries(Object.entries(service.work).filter(([key]) => !key.startsWith('job_duration')));
}

function requestTable({ service, baselines: { plain } }: Combination): string {
  const routes = [...new Set([...Object.keys(service.requests), ...Object.keys(plain.requests)])].sort();
  const of = (rates: Readonly<Record<string, number>>, route: string) => short(rates[route] ?? 0);
  return tableOf(
    ['route', 'oddswire', 'plain program'],
    routes.map((route) => [route, of(service.requests, route), of(plain.requests, route)]),
  );
}

function scanTable({ service }: Combination, top: number): string {
  const work = (row: Record<string, number>) => Object.values(row).reduce((sum, value) => sum + value, 0);
  const rows = Object.entries(service.database.tables).sort(([, a], [, b]) => work(b) - work(a));
  return tableOf(
    ['table', 'sequential scans', 'index scans', 'inserted', 'updated', 'of these HOT', 'deleted'],
    rows.slice(0, top).map(([name, { seqScans, indexScans, inserted, updated, hotUpdated, deleted }]) => {
      return [name, ...[seqScans, indexScans, inserted, updated, hotUpdated, deleted].map(short)];
    }),
  );
}

function walTables({ service: { wal, seconds } }: Combination, top: number): string {
  if (typeof wal === 'string') return `not measured: ${wal}`;
  const tables = (['tables', 'kinds'] as const).map((kind) =>
    tableOf(
      [
        kind === 'tables' ? 'relation' : 'kind of record',
        'KB per second',
        'full-page images, KB per second',
        'records per second',
      ],
      wal[kind].slice(0, top).map(({ name, bytes, imageBytes, records }) => {
        return [name, ...[bytes / seconds / 1_024, imageBytes / seconds / 1_024, records / seconds].map(short)];
      }),
    ),
  );
  const transactions = wal.transactions
    .slice(0, top)
    .map(({ name, transactions: count }) => [name, short(count / seconds)]);
  return [...tables, tableOf(['transactions that write', 'per second'], transactions)].join('\n\n');
}

const TEXT_LENGTH = 110;

/** The tables that a statement changes or locks by its text: long statements begin alike. */
export function writesOf(text: string): string {
  const found = text.matchAll(/\b(?:INSERT INTO|UPDATE|DELETE FROM) ([a-z_]+)(?= (?!OF\b)|\()/g);
  return [...new Set([...found].flatMap(([, name = '']) => (name === 'SET' ? [] : [name])))].join(', ');
}

function statementTable({ service }: Combination, top: number, by: (cost: StatementCost) => number): string {
  const { statements, seconds } = service;
  if (statements === undefined) return 'not measured: pg_stat_statements is not loaded';
  const all = statements.reduce((sum, cost) => sum + by(cost), 0);
  const largest = [...statements].sort((a, b) => by(b) - by(a)).slice(0, top);
  return tableOf(
    [
      ...['share', 'calls per second', 'ms per second', 'of these for plans', 'ms each', 'plans per second'],
      ...['rows each', 'WAL bytes each', 'writes', 'statement'],
    ],
    largest.map((cost) => {
      const { calls, ms, plans, planMs, rows, walBytes, text } = cost;
      const share = `${short((100 * by(cost)) / all)} %`;
      const whole = ms + planMs;
      return [
        share,
        ...[calls / seconds, whole / seconds, planMs / seconds, whole / calls, plans / seconds].map(short),
        ...[rows / calls, walBytes / calls].map(short),
        writesOf(text),
        text.slice(0, TEXT_LENGTH).replaceAll('|', '\\|'),
      ];
    }),
  );
}

function pairs(first: string, second: string, values: Readonly<Record<string, number>>, top: number): string {
  const sorted = Object.entries(values).sort(([, a], [, b]) => b - a);
  return tableOf(
    [first, second],
    sorted.slice(0, top).map(([name, value]) => [name, short(value)]),
  );
}

/** One line for a program: rates with their names, and the largest statements. */
export function jsonLine(combination: Combination, top: number): string {
  const { service, baselines, ...rest } = combination;
  const largest = [...(service.statements ?? [])].sort((a, b) => b.ms + b.planMs - a.ms - a.planMs).slice(0, top);
  const { statements: _, ...plain } = baselines.plain;
  return JSON.stringify({
    bench: 'steady',
    ...rest,
    jobsPerSecond: jobsPerSecond(combination),
    statementsPerSecond: statementRates(service.statements, service.seconds),
    service: { ...service, statements: largest },
    baselines: { ...baselines, plain, statementsPerSecond: statementRates(baselines.plain.statements, plain.seconds) },
  });
}
