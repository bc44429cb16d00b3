import type { DecimalFormat } from '../../src/domain/values/api-json.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import { readChanges, readJournalHead } from '../../src/store/journal/read-journal.ts';
import type { Subscription } from './client.ts';
import { matches } from './filter.ts';
import { type Frame, gapMessage, type JournalPosition, type StreamCursors } from './frame.ts';
import type { MarketHub } from './hub.ts';
import type { Start } from './port.ts';
import { readSnapshot } from './snapshot.ts';

/** Changes per read. */
const PAGE = 500;
/** Reads of the journal at once: many clients reconnect after a restart, and requests need connections too. */
const MAX_READS = 3;

interface ReplayOptions {
  hub: MarketHub;
  db: Queryable;
  cursors: StreamCursors;
  decimalFormat: DecimalFormat;
  log: Logger;
}

function isOpen(subscription: Subscription): boolean {
  const { client, id } = subscription;
  return !client.hasEnded && client.subscriptions.get(id) === subscription;
}

/** The stored changes of a page, or the numbers that are not stored any more. */
type Page = { frames: readonly Frame[]; upTo: number } | { lost: number } | { epoch: string };

/** Sends a snapshot or the changes that a client missed, and then makes its subscription live. */
export class Replays {
  readonly #options: ReplayOptions;
  readonly #reads = taskLimit(MAX_READS);

  constructor(options: ReplayOptions) {
    this.#options = options;
  }

  /**
   * Begins a subscription at `from`: the requested position, or the present. With a snapshot, the state of its markets comes first when no
   * position was requested, or one whose next change is not stored. Resolves when the subscription is live or has ended.
   */
  begin(subscription: Subscription, from: JournalPosition, { position, hasSnapshot }: Start): Promise<void> {
    const { head } = this.#options.hub;
    const isStored = from.epoch === head?.epoch && from.seq >= head.oldestSeq - 1;
    if (hasSnapshot && !(position && isStored)) return this.#beginWithSnapshot(subscription, position);
    return this.#run(subscription, from);
  }

  /** The state is read after the number of the present, so it holds at least every change up to this number. */
  async #beginWithSnapshot(subscription: Subscription, lost: JournalPosition | undefined): Promise<void> {
    const { hub, db, cursors, decimalFormat, log } = this.#options;
    const { client, filter, id } = subscription;
    while (isOpen(subscription)) {
      const { head, seq } = hub;
      if (!head) return;
      try {
        const cursor = cursors.encode({ epoch: head.epoch, seq });
        const messages = await readSnapshot(db, filter, { head, seq, cursor, decimalFormat });
        // Meanwhile the client may have unsubscribed, and used the id again.
        if (client.subscriptions.get(id) !== subscription) return;
        if (lost) this.#announceLoss(subscription, lost, seq);
        for (const message of messages) client.push(message, id);
        hub.rounds.mark(client);
        await this.#run(subscription, { epoch: head.epoch, seq });
        return;
      } catch (error) {
        log.debug({ err: error }, 'snapshot not read; will retry');
        await hub.nextBatch();
      }
    }
  }

  /**
   * Continues a subscription after a position. It is `live` on return when no change is missing, otherwise when the promise resolves.
   * A position of another epoch, or before the oldest stored change, begins with a `gap`.
   */
  async #run(subscription: Subscription, { epoch, seq }: JournalPosition): Promise<void> {
    const { hub } = this.#options;
    let position = seq;
    subscription.state = 'replaying';
    subscription.sent = seq;
    while (isOpen(subscription) && subscription.state === 'replaying') {
      if (hub.head?.epoch !== epoch) {
        this.#begin(subscription, { from: position + 1, to: hub.seq, reason: 'epoch' }, hub.seq);
        return;
      }
      if (position >= hub.seq) {
        subscription.after = position;
        subscription.state = 'live';
        return;
      }
      const page = await this.#page(subscription, position, epoch);
      if (page === undefined) await hub.nextBatch();
      else if ('lost' in page) {
        this.#announce(subscription, { from: position + 1, to: page.lost, reason: 'expired' }, page.lost);
        position = page.lost;
      } else if ('frames' in page) {
        await this.#send(subscription, page.frames);
        position = page.upTo;
      } else await hub.nextBatch();
    }
  }

  /** Sends a `gap` from the position up to this number. */
  #announceLoss(subscription: Subscription, { epoch, seq }: JournalPosition, to: number): void {
    const reason = epoch === this.#options.hub.head?.epoch ? 'expired' : 'epoch';
    if (reason === 'epoch') subscription.sent = 0;
    this.#announce(subscription, { from: seq + 1, to, reason }, to);
  }

  /** Live at this number, after a gap. */
  #begin(
    subscription: Subscription,
    gap: { from: number; to: number; reason: 'epoch' | 'expired' },
    seq: number,
  ): void {
    subscription.sent = 0;
    this.#announce(subscription, gap, seq);
    subscription.after = seq;
    subscription.state = 'live';
  }

  #announce(
    subscription: Subscription,
    gap: { from: number; to: number; reason: 'epoch' | 'expired' },
    seq: number,
  ): void {
    const { hub, cursors, decimalFormat } = this.#options;
    if (!hub.head) return;
    const { venue } = subscription.filter;
    const message = gapMessage({ ...gap, venue, head: hub.head, seq }, { cursors, decimalFormat });
    subscription.client.push(message, subscription.id);
    hub.rounds.mark(subscription.client);
  }

  async #send(subscription: Subscription, frames: readonly Frame[]): Promise<void> {
    const { hub } = this.#options;
    const { client, filter, id } = subscription;
    for (const frame of frames) {
      await client.room();
      if (!isOpen(subscription)) return;
      if (!matches(filter, frame, hub.categories.of)) continue;
      client.push(frame, id);
      hub.rounds.mark(client);
    }
  }

  /** Undefined when the database did not answer. */
  async #page({ filter }: Subscription, after: number, epoch: string): Promise<Page | undefined> {
    const { hub, db, log } = this.#options;
    const recent = hub.recentAfter(after, PAGE);
    const upTo = recent?.at(-1)?.seq;
    try {
      if (recent !== undefined && upTo !== undefined) {
        if (filter.category !== undefined) await hub.categories.load(recent);
        return { frames: recent, upTo };
      }
      return await this.#reads.run(() => this.#readPage(filter, after, hub.seq, epoch, db));
    } catch (error) {
      log.debug({ err: error }, 'stored changes not read; will retry');
      return undefined;
    }
  }

  /** Reads the changes first and the head afterwards: partitions that were dropped in between then show as lost. */
  async #readPage(
    filter: Subscription['filter'],
    after: number,
    upTo: number,
    epoch: string,
    db: Queryable,
  ): Promise<Page> {
    const { hub } = this.#options;
    const [venue, ...others] = filter.venues;
    const changes = await readChanges(db, {
      after,
      upTo,
      limit: PAGE,
      ...(venue !== undefined && others.length === 0 && { venue }),
      ...(filter.marketIds !== undefined && { marketIds: [...filter.marketIds] }),
    });
    const head = await readJournalHead(db);
    if (head.epoch !== epoch) return { epoch: head.epoch };
    if (head.oldestSeq > after + 1) return { lost: Math.min(head.oldestSeq - 1, upTo) };
    if (filter.category !== undefined) await hub.categories.load(changes);
    const last = changes.length < PAGE ? upTo : (changes.at(-1)?.seq ?? upTo);
    return { frames: changes.map((change) => hub.frameOf(change)), upTo: last };
  }
}

/** Limits how many tasks run at once. The others wait in their order. */
function taskLimit(limit: number): { run<T>(task: () => Promise<T>): Promise<T> } {
  const waiting: (() => void)[] = [];
  let running = 0;
  return {
    async run(task) {
      if (running >= limit) await new Promise<void>((resolve) => void waiting.push(resolve));
      else running += 1;
      try {
        return await task();
      } finally {
        const next = waiting.shift();
        // The next task takes the place over.
        if (next) next();
        else running -= 1;
      }
    },
  };
}
