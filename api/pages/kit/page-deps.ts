import type { Logger } from '../../../src/observe/logger.ts';
import type { Producer } from '../../../src/queues/producer.ts';
import type { QuotaDefaults } from '../../../src/store/accounts/quotas.ts';
import type { AccountLimits } from '../../access/account-limits.ts';
import type { ReadDeps } from '../../reads/read-deps.ts';

/** The dependencies of pages. */
export interface PageDeps extends ReadDeps {
  log: Logger;
  producer: Pick<Producer, 'wakeDeliveries' | 'queue'>;
  limits: Pick<AccountLimits, 'take' | 'look' | 'takeFailure'>;
  /** The quotas of an account without quotas of its own. */
  quotas: QuotaDefaults;
}
