import { z } from 'zod';
import { count, epochTime } from './wire.ts';

/** The oldest ones of an answer. */
export const MAX_GAPS = 100;

export const feedState = z.enum(['off', 'connecting', 'live', 'silent', 'refused', 'given_up', 'stopped']);

/** The feed of a venue, as all streamers together see it. */
export const feed = z
  .object({
    state: feedState.meta({
      description:
        '`live`: data arrives. `connecting`: it does not yet, or not any more. `silent`: the venue answers pings and sends no data. `refused`: the venue rejects the key. `given_up`: no market of a connection stayed complete, so it waits before its next try. `stopped`: no streamer runs. `off`: the configuration turns it off, with the reason. Polls continue in every state.',
    }),
    reason: z.string().optional().meta({ description: 'Why the state is not `live`.' }),
    next_try_at: epochTime.optional().meta({
      description: 'Of `given_up`: when the feed connects again. Absent while it tries.',
    }),
    subscribed: count.meta({ description: 'Outcomes whose changes the feed sends.' }),
    messages_per_second: z.number().min(0),
    lag_ms: z.number().optional().meta({
      description:
        "The time between the venue's time of a message and its arrival. It contains the difference of the clocks. Absent without messages that state a time.",
    }),
    gaps_24h: count.meta({ description: 'Gaps within the last 24 hours, open ones too.' }),
  })
  .meta({ description: 'The WebSocket feed of the venue.' });
export type FeedBody = z.output<typeof feed>;

export const feedExample: FeedBody = {
  state: 'live',
  subscribed: 4000,
  messages_per_second: 412.5,
  lag_ms: 38,
  gaps_24h: 2,
};

const feedGap = z.object({
  start: epochTime,
  end: epochTime.nullable().meta({ description: 'Exclusive. `null` while the gap lasts.' }),
  cause: z.string().meta({ description: 'Why changes may be missing, in a fixed word.' }),
});
export type FeedGapBody = z.output<typeof feedGap>;

/** In the `meta` of an answer about a time. */
export const feedGaps = z.array(feedGap).optional().meta({
  description:
    'Intervals of this time in which the feed of the venue may have lost changes of the market. Polls continued, so values are as old as without a feed. Absent without a gap.',
});
