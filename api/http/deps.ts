import type { DecimalFormat } from '../../src/domain/values/api-json.ts';
import type { Producer } from '../../src/queues/producer.ts';
import type { QuotaDefaults } from '../../src/store/accounts/quotas.ts';
import type { Database } from '../../src/store/db/tx.ts';
import type { SecretBox } from '../../src/webhooks/secret-box.ts';
import type { AccountLimits } from '../access/account-limits.ts';
import type { AnswerCache } from '../reads/answer-cache.ts';
import type { MarketMemory } from '../reads/market-memory.ts';
import type { ReadDeps } from '../reads/read-deps.ts';

/** How routes answer: as the app does, or as a call inside this process asks. */
export interface AnswerDeps {
  db: Database;
  decimalFormat: DecimalFormat;
  /** Prepared answers of market routes. */
  answers: AnswerCache;
  /** Markets and quotes in memory; absent: each read takes an answer that is kept, or the database. */
  memory?: MarketMemory;
  /** Counts the cold reads of accounts. */
  limits: Pick<AccountLimits, 'take'>;
  /** How long a request waits for the result of a job, milliseconds. */
  coldWaitMs: number;
  /** Seals stored answers. */
  secretBox: SecretBox;
  /** Epoch milliseconds. */
  now(): number;
}

/** The dependencies of routes for the resources of an account. */
export interface WriteDeps extends ReadDeps {
  /** Used for wake-ups only. */
  producer: Pick<Producer, 'wake' | 'wakeDeliveries' | 'wakeStage'>;
  /** The quotas of an account without quotas of its own. */
  quotas: QuotaDefaults;
  secretBox: SecretBox;
}
