import type { ProcessContext } from '../../src/runtime/process-context.ts';
import type { WindowMemory } from '../../src/store/alerts/windows.ts';
import type { VenueAdapter } from '../../src/venues/port.ts';
import type { TokenAdapter } from '../../src/venues/token-port.ts';
import type { WalletAdapter } from '../../src/venues/wallet-port.ts';
import type { Sender } from '../../src/webhooks/sender.ts';
import type { PriceConfirmations } from '../ingest/price-confirmations.ts';
import type { PollLeases } from '../polling/poll-leases.ts';
import type { WaitingLanes } from './waiting-lanes.ts';

/** The dependencies of the jobs of one process. */
export interface WorkerDeps extends ProcessContext {
  readonly adapters: ReadonlyMap<string, VenueAdapter>;
  readonly walletAdapters: ReadonlyMap<string, WalletAdapter>;
  readonly tokenAdapters: ReadonlyMap<string, TokenAdapter>;
  readonly sender: Sender;
  /** The windows of alerts that this process has read. */
  readonly windows: WindowMemory;
  /** The leases of the polls that this process holds. */
  readonly pollLeases: PollLeases;
  /** The confirmations of prices of all polls. Absent: each poll writes its own. */
  readonly confirmations?: PriceConfirmations;
  /** The lanes whose jobs wait in this process. Absent: a job ends when its lane has no marks. */
  readonly lanes?: WaitingLanes;
}
