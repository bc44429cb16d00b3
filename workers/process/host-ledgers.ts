import { OddswireError } from '../../src/domain/values/errors.ts';
import { within } from '../../src/domain/values/signals.ts';
import type { Collector } from '../../src/observe/collectors.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { Metrics } from '../../src/observe/metrics.ts';
import {
  type BudgetChange,
  changeHostBudget,
  hostRates,
  openHostBudget,
  SLOWED_CHANNEL,
} from '../../src/store/catalog/host-budgets.ts';
import type { Listen } from '../../src/store/db/presence.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import type { BudgetTerms, OpenLedger, RateLedger } from '../../src/venues/http/rate-ledger.ts';

/** A call waits for a turn with its whole deadline, so a silent database must not use all of it. */
const ANSWER_MS = 5_000;

interface HostLedgers {
  open: OpenLedger;
  /** The notifications of slower budgets. Without them no turns are reserved. */
  listen: Listen;
  /** The present rates of the hosts of the opened ledgers. */
  gauge(metrics: Metrics): Collector;
}

/** Ledgers in Postgres: all processes with a client of one host share its request budget. */
export function createHostLedgers({ db, log }: { db: Queryable; log: Logger }): HostLedgers {
  const opened: BudgetTerms[] = [];
  const slowed: { key: string; listener: () => void }[] = [];
  let isAway = false;
  let isListening = false;

  /** All hosts share a database, so an outage is one line. */
  async function logged<T>(venue: string, work: Promise<T>): Promise<T> {
    try {
      const result = await within(ANSWER_MS, work, () => {
        throw new OddswireError('host_budget', `the database did not answer in ${ANSWER_MS} ms`, { retryable: true });
      });
      if (isAway) log.info({ venue }, 'request budgets available again');
      isAway = false;
      return result;
    } catch (error) {
      if (!isAway)
        log.warn({ venue, err: error }, 'request budgets unavailable: calls to venues fail until the database answers');
      isAway = true;
      throw error;
    }
  }

  function open(terms: BudgetTerms): RateLedger {
    opened.push(terms);
    const budget = { host: terms.key, ceiling: terms.perSecond, burst: terms.burst };
    let isOpen = false;

    async function changed(change: BudgetChange) {
      const found = isOpen ? await changeHostBudget(db, budget, change) : undefined;
      if (found) return found;
      // The first change of this process, or the first after a crash of the server emptied the table.
      await openHostBudget(db, budget);
      isOpen = true;
      const made = await changeHostBudget(db, budget, change);
      if (!made) throw new OddswireError('host_budget', `the budget of ${terms.key} was deleted`, { retryable: true });
      return made;
    }

    const apply = (change: BudgetChange) => logged(terms.venue, changed(change));
    return {
      take: (turns, successes, { most = 0, ...reserve } = { most: 0 }) =>
        apply({ turns, successes, reserve: { most: isListening ? most : 0, ...reserve } }),
      limited: (takenAt) => apply({ limitedAt: takenAt }),
      pause: (ms) => apply({ pauseMs: ms }),
      onSlowed: (listener) => void slowed.push({ key: terms.key, listener }),
    };
  }

  const listen: Listen = {
    channel: SLOWED_CHANNEL,
    onReady() {
      isListening = true;
    },
    onMessage(key) {
      for (const each of slowed) if (each.key === key) each.listener();
    },
    onLost() {
      isListening = false;
      for (const { listener } of slowed) listener();
    },
  };

  function gauge({ venueRequestRate }: Metrics): Collector {
    return {
      name: 'budgets',
      async read() {
        const clients = opened.filter(({ isShare }) => !isShare);
        const keys = clients.map(({ key }) => key);
        const rates = await hostRates(db, keys);
        // A host with several clients, such as trades and wallets of one API, shows the sum of their budgets.
        venueRequestRate.reset();
        for (const { venue, host, key, perSecond } of clients)
          venueRequestRate.inc({ venue, host }, rates.get(key) ?? perSecond);
      },
      forget: () => venueRequestRate.reset(),
    };
  }

  return { open, listen, gauge };
}
