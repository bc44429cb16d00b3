import { expect, it } from 'vitest';
import { createAccountUses } from '../../../api/streams/account-use.ts';

const LIMITS = { maxConnections: 10, connectionsPerAccount: 10, subscriptionsPerAccount: 5, messagesPerSecond: 0 };

it('an account gets no subscription back twice when a connection ends while one of them is refused', () => {
  const uses = createAccountUses(LIMITS);
  const [kept, ended] = [uses.open(1n), uses.open(1n)];
  expect([kept.addSubscription(), ended.addSubscription()]).toEqual([true, true]);
  ended.release();
  ended.removeSubscription();
  expect(uses.of(1n)).toMatchObject({ connections: 1, subscriptions: 1 });
});
