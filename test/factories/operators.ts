import { hashPassword } from '../../src/domain/values/password.ts';
import type { Database } from '../../src/store/db/tx.ts';
import { changeOperator, type OperatorRole } from '../../src/store/ops/operators.ts';

/** A tenth of the real cost. Guesses at the same time still wait for each other. */
export const PASSWORD_COST = { N: 2 ** 13, r: 8, p: 1 };

const unrecorded = async () => undefined;

/** Adds an operator of the pages. False when the name exists already. */
export async function anOperator(
  db: Database,
  { name, role, password }: { name: string; role: OperatorRole; password: string },
): Promise<boolean> {
  const passwordHash = await hashPassword(password, PASSWORD_COST);
  return changeOperator(db, { action: 'add', name, role, passwordHash }, unrecorded);
}

/** Sets the password of an operator. */
export async function setPassword(db: Database, name: string, password: string): Promise<boolean> {
  const passwordHash = await hashPassword(password, PASSWORD_COST);
  return changeOperator(db, { action: 'password', name, passwordHash }, unrecorded);
}

export function removeOperator(db: Database, name: string): Promise<boolean> {
  return changeOperator(db, { action: 'remove', name }, unrecorded);
}
