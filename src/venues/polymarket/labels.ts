import type { GammaMarket } from './models.ts';

/**
 * The categories of the venue's own navigation by the slugs of their tags, the most specific first: the venue tags a market about an
 * interest rate with `politics` beside `economy`, and one about a party leader with `world` beside `elections`.
 */
const CATEGORIES: readonly (readonly [slug: string, category: string])[] = [
  ['mention-markets', 'Mentions'],
  ['tweets-markets', 'Mentions'],
  ['esports', 'Esports'],
  ['sports', 'Sports'],
  ['crypto', 'Crypto'],
  ['weather', 'Weather'],
  ['elections', 'Elections'],
  ['geopolitics', 'Geopolitics'],
  ['earnings', 'Earnings'],
  ['economy', 'Economy'],
  ['finance', 'Finance'],
  ['tech', 'Tech'],
  ['ai', 'Tech'],
  ['science', 'Science'],
  ['climate-science', 'Science'],
  ['pop-culture', 'Culture'],
  ['culture', 'Culture'],
  ['entertainment', 'Culture'],
  ['business', 'Business'],
  ['politics', 'Politics'],
  ['world', 'World'],
];

/** Tags that control the venue's own pages or rewards and do not describe the market. */
const DISPLAY_TAGS = new Set(['all', 'featured', 'hide-from-new', 'new', 'parent-for-derivative', 'trending']);
const REWARD_TAG = /^(?:earn|rewards)-\d/;

type GammaTag = NonNullable<GammaMarket['tags']>[number];

interface Labels {
  /** Slugs, or labels where the venue sends only those, in the venue's order. */
  tags: string[];
  category?: string;
  isUntagged?: true;
}

/**
 * Tags and category of a market, from its own tags and those of its events. Markets from the years before tags have a category field, which
 * counts where no tag gives a category. An answer without any list of tags leaves both unknown.
 */
export function labelsOf(market: GammaMarket): Labels {
  const events = market.events ?? [];
  const lists = [market.tags, ...events.map((event) => event.tags)].filter(
    (tags) => tags !== undefined && tags !== null,
  );
  const tags = lists.flat();
  const category = categoryOf(tags) ?? (market.category || events[0]?.category || undefined);
  const named = tags.filter((tag) => !isForDisplay(slugOf(tag)));
  return {
    tags: [...new Set(named.flatMap((tag) => (typeof tag === 'string' ? tag : tag.slug) || []))],
    ...(category !== undefined && { category }),
    ...(lists.length === 0 && { isUntagged: true }),
  };
}

/** The first category of the table for these tags. */
function categoryOf(tags: readonly GammaTag[]): string | undefined {
  const slugs = new Set(tags.map(slugOf));
  return CATEGORIES.find(([slug]) => slugs.has(slug))?.[1];
}

function isForDisplay(slug: string): boolean {
  return DISPLAY_TAGS.has(slug) || REWARD_TAG.test(slug);
}

/** Lower-case words joined by dashes. */
function slugOf(tag: GammaTag): string {
  const text = typeof tag === 'string' ? tag : tag.slug || tag.label || '';
  return text.trim().toLowerCase().replace(/\s+/g, '-');
}
