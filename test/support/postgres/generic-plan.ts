import type { Database, Queryable, Statement } from '../../../src/store/db/tx.ts';

export interface PlanNode {
  'Node Type': string;
  'Actual Rows': number;
  'Actual Loops': number;
  Plans?: PlanNode[];
}

/** The nodes of the generic plan of the first statement that `read` runs, with the row counts for its values. A write is rolled back. */
export async function genericPlanOf(db: Database, read: (db: Queryable) => Promise<unknown>): Promise<PlanNode[]> {
  const ran: [Statement, readonly unknown[]][] = [];
  await read({
    query: async (statement, values = []) => {
      ran.push([statement, values]);
      return [];
    },
  });
  const [[statement, values] = []] = ran;
  if (!statement || !values) throw new Error('no statement');
  return genericPlan(db, statement, values);
}

/** The generic plan is the same for all values. */
async function genericPlan(db: Database, statement: Statement, values: readonly unknown[]): Promise<PlanNode[]> {
  const runner = db.dataSource.createQueryRunner();
  try {
    await runner.query('BEGIN');
    await runner.query(`SET LOCAL plan_cache_mode = force_generic_plan`);
    await runner.query(`PREPARE explained AS ${statement.text}`);
    const call = `EXECUTE explained(${values.map(literal).join(', ')})`;
    const [row] = (await runner.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${call}`)) as {
      'QUERY PLAN': { Plan: PlanNode }[];
    }[];
    await runner.query('DEALLOCATE explained');
    return nodesOf(row?.['QUERY PLAN'][0]?.Plan as PlanNode);
  } finally {
    await runner.query('ROLLBACK');
    await runner.release();
  }
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

function literal(value: unknown): string {
  if (value === null) return 'NULL';
  if (!Array.isArray(value)) return `'${String(value)}'`;
  return `'{${value.map((one) => (one === null ? 'NULL' : `"${String(one)}"`)).join(',')}}'`;
}
