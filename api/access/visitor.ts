/**
 * The caller of the one market that everyone may read, without a key. Numbers of accounts begin at 1, so no account gets its counts. It
 * causes no cold read.
 */
export const VISITOR = { accountId: 0n, keyId: '', scopes: ['markets:read'], coldReadsPerMinute: 0 };

export function isVisitor({ accountId }: { accountId: bigint }): boolean {
  return accountId === VISITOR.accountId;
}
