import { hostname, userInfo } from 'node:os';
import { newId } from '../src/domain/values/ids.ts';
import type { Queryable } from '../src/store/db/tx.ts';
import { recordAction } from '../src/store/ops/actions.ts';

/** Stores an action of a command in the audit trail, in the transaction of the action. */
export async function recordCommand(
  tx: Queryable,
  { action, subject, detail = '' }: { action: string; subject: string; detail?: string },
): Promise<void> {
  const who = { source: 'command', actor: userName(), address: hostname() } as const;
  const entry = { ...who, action, target: subject, status: 'done', result: detail, requestId: newId('req') } as const;
  await recordAction(tx, entry, Date.now());
}

/** The user of this machine; the number when it has no name, as in some containers. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
