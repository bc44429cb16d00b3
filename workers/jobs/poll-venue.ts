import { venueQueue } from '../../src/queues/jobs.ts';
import { type Poll, pollsOf } from '../../src/queues/schedules.ts';
import { oncePerOwner } from '../../src/store/db/batcher.ts';
import type { PollLeases } from '../polling/poll-leases.ts';
import { type VenuePoll, VenuePolls } from '../polling/venue-polls.ts';
import { defineJob, type JobReport } from '../process/define.ts';

/** The kind of the lease of each poll; each wallet has a lease of its own. */
const LEASES: Record<Poll['job'], string | undefined> = {
  'poll-markets': 'markets',
  'poll-prices': 'prices',
  'poll-books': 'books',
  'poll-trades': 'trades',
  'poll-wallets': undefined,
  'poll-tokens': 'tokens',
  'witness-trades': 'witness',
};

const venuePollsOf = oncePerOwner((leases: PollLeases) => new VenuePolls(leases));

/** Runs the due polls of a venue, unless an operator paused the queue of the venue. */
export const pollVenue = defineJob('poll-venue', async ({ venue }, context) => {
  const { config, producer, pollLeases, signal, stopping } = context;
  const enabled = config.venues.find((name) => name === venue);
  if (enabled === undefined) return { skipped: 'venue not enabled' };
  if (await producer.queue(venueQueue(venue)).isPaused()) return { skipped: 'the queue of the venue is paused' };
  const polls = pollsOf(enabled, config).map((poll): VenuePoll => {
    const run = async () => {
      // The processor logs a failure; the next poll is due all the same.
      const report = await context.run(poll.job, { venue }).catch((): JobReport => ({}));
      return Number(report['written'] ?? 0) > 0;
    };
    const follows = poll.job === 'poll-prices' ? 'poll-markets' : undefined;
    return { ...poll, kind: LEASES[poll.job], follows, run };
  });
  const begun = await venuePollsOf(pollLeases).stay(venue, polls, signal);
  // Another process goes on now, and not at the next time of the schedule.
  if (stopping.aborted) producer.wake('poll-venue', { venue });
  return { polls: begun };
});
