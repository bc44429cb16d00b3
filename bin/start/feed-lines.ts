import type { Config } from '../../src/config/config.ts';
import { type FeedOffReason, feedOffReason } from '../../src/config/feeds.ts';

/** The reasons of docs/feeds.md for a person. */
const REASONS: Readonly<Record<FeedOffReason, string>> = {
  disabled: 'FEEDS does not turn it on; polls read it',
  not_supported: 'the venue has no feed; polls read it',
  no_address: 'its API is not the public one, and its feed has no address; polls read it',
  no_key: 'KALSHI_API_KEY_ID and KALSHI_PRIVATE_KEY_FILE are not set; polls read it',
};

interface FeedLines {
  /** The venues that the streamer reads. */
  readonly on: readonly string[];
  /** Each other venue, with the reason; `canBeOn` where another configuration turns the feed on. */
  readonly off: readonly { readonly venue: string; readonly reason: string; readonly canBeOn: boolean }[];
}

/** Which venues stream, by the configuration. Whether a feed can be reached is in `GET /v1/venues`. */
export function feedLines({ venues, feeds }: Pick<Config, 'venues' | 'feeds'>): FeedLines {
  const found = venues.map((venue) => ({ venue, off: feedOffReason(venue, feeds) }));
  return {
    on: found.flatMap(({ venue, off }) => (off === undefined ? [venue] : [])),
    off: found.flatMap(({ venue, off }) =>
      off === undefined ? [] : [{ venue, reason: REASONS[off], canBeOn: off !== 'not_supported' }],
    ),
  };
}
