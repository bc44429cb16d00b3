import type { Producer } from '../../src/queues/producer.ts';
import type { QuotaDefaults } from '../../src/store/accounts/quotas.ts';
import type { SecretBox } from '../../src/webhooks/secret-box.ts';
import type { ReadDeps } from '../reads/read-deps.ts';

/** The dependencies of routes for the resources of an account. */
export interface WriteDeps extends ReadDeps {
  /** Used for wake-ups only. */
  producer: Pick<Producer, 'wake' | 'wakeDeliveries' | 'wakeStage'>;
  /** The quotas of an account without quotas of its own. */
  quotas: QuotaDefaults;
  secretBox: SecretBox;
}
