import type { GapSummary } from '../../../src/store/feeds/gaps.ts';
import type { FeedReport, StoredFeedState } from '../../../src/store/feeds/streamers.ts';
import type { VenueFeeds } from '../../reads/feed-states.ts';
import type { EnabledVenue } from '../../reads/venue-catalog.ts';
import { ago, badge, code, duration, type Html, html, longText, NONE, number, type Tone, table } from '../kit/html.ts';

/** The number of listed gaps. */
export const SHOWN_GAPS = 20;

const TONES: Readonly<Record<StoredFeedState, Tone>> = {
  live: 'good',
  connecting: 'warn',
  silent: 'bad',
  refused: 'bad',
  given_up: 'bad',
  stopped: 'bad',
  off: 'idle',
};

export function feedBadge(state: StoredFeedState): Html {
  return badge(TONES[state], state.replace('_', ' '));
}

export function feedTable(venues: readonly EnabledVenue[], { states, open, recent }: VenueFeeds, nowMs: number): Html {
  const titles = new Map<string, string>(venues.map(({ venue, title }) => [venue, title]));
  return table<FeedReport>({
    caption: 'WebSocket feeds',
    columns: [
      { label: 'Venue', cell: ({ venue }) => titles.get(venue) ?? venue },
      { label: 'Feed', cell: ({ state }) => feedBadge(state) },
      { label: 'Outcomes', cell: ({ subscribed }) => number(subscribed), isNumeric: true },
      {
        label: 'Messages per second',
        cell: ({ messagesPerSecond }) => number(Math.round(messagesPerSecond * 10) / 10),
        isNumeric: true,
      },
      {
        label: 'Lag',
        cell: ({ lagMs }) => (lagMs === null ? NONE : html`<span class="num">${duration(lagMs)}</span>`),
      },
      { label: 'Open gaps', cell: ({ venue }) => openGaps(open.get(venue) ?? 0) },
      { label: 'Gaps in 24 h', cell: ({ venue }) => number(recent.get(venue) ?? 0), isNumeric: true },
      { label: 'Reason', cell: ({ state, reason }) => longText(reason ?? (state === 'stopped' ? STOPPED : null)) },
      { label: 'Next try', cell: ({ nextTryAt }) => ago(nextTryAt, nowMs) },
    ],
    rows: venues.flatMap(({ venue }) => states.get(venue) ?? []),
    empty: 'No enabled venue has markets.',
  });
}

const STOPPED = 'no streamer runs';

function openGaps(count: number): Html {
  return count === 0 ? number(0) : badge('warn', String(count));
}

export function gapTable(gaps: readonly GapSummary[], nowMs: number): Html {
  return table<GapSummary>({
    caption: `Gaps of the feed, open ones first, at most ${SHOWN_GAPS}`,
    columns: [
      { label: 'Reason', cell: ({ reason }) => code(reason) },
      {
        label: 'State',
        cell: ({ open }) => (open > 0 ? badge('warn', `${open} open`) : badge('idle', 'ended')),
      },
      { label: 'Begin', cell: ({ fromAt }) => ago(fromAt, nowMs) },
      {
        label: 'Length',
        cell: ({ fromAt, toAt }) =>
          html`<span class="num">${duration((toAt?.getTime() ?? nowMs) - fromAt.getTime())}</span>`,
      },
      { label: 'Affected', cell: ({ affected }) => affected },
      { label: 'Markets', cell: ({ markets }) => number(markets), isNumeric: true },
      { label: 'One of them', cell: ({ marketId }) => longText(marketId) },
    ],
    rows: gaps,
    empty: 'No gap of the last 30 days is known.',
  });
}
