import { hashWord } from '../random.ts';
import type { EventSpec } from '../world/catalog.ts';

/** Tags in the venue's order: a person or "Meta" may come first, and a display tag may be among them. */
const TAG_LISTS: readonly (readonly (readonly [label: string, slug: string])[])[] = [
  [
    ['Meta', 'meta'],
    ['Big Tech', 'big-tech'],
    ['Tech', 'tech'],
    ['Business', 'business'],
  ],
  [
    ['Donald Trump', 'donald-trump'],
    ['Politics', 'politics'],
    ['Cabinet', 'cabinet'],
  ],
  [
    ['Games', 'games'],
    ['Sports', 'sports'],
    ['Hide From New', 'hide-from-new'],
  ],
  [
    ['Ukraine', 'ukraine'],
    ['World', 'world'],
    ['Politics', 'politics'],
    ['Geopolitics', 'geopolitics'],
  ],
  [
    ['All', 'all'],
    ['Taylor Swift', 'taylor-swift'],
    ['Politics', 'politics'],
    ['Culture', 'pop-culture'],
  ],
  [
    ['Hurricanes', 'hurricanes'],
    ['Climate & Science', 'climate-science'],
    ['Weather', 'weather'],
  ],
  [],
];
const CENTRAL_BANK = [
  ['Economic Policy', 'economic-policy'],
  ['Jerome Powell', 'jerome-powell'],
  ['Politics', 'politics'],
  ['Economy', 'economy'],
] as const;
const ROLLING = [
  ['Up or Down', 'up-or-down'],
  ['Crypto Prices', 'crypto-prices'],
  ['Hide From New', 'hide-from-new'],
  ['Crypto', 'crypto'],
] as const;
/** The venue hides these two tags on all its pages. */
const HIDDEN = new Set(['politics', 'elections']);

/** The tags of an event, which its markets share. */
export function gammaTags(event: EventSpec, seed: number): Record<string, unknown>[] {
  return listOf(event, seed).map(([label, slug]) => ({
    id: String(100 + (hashWord(61, slug.length, slug.charCodeAt(0), slug.charCodeAt(slug.length - 1)) % 100_000)),
    label,
    slug,
    forceShow: false,
    forceHide: HIDDEN.has(slug) ? true : undefined,
    createdAt: '2025-02-06T18:05:50.554703Z',
    updatedAt: '2026-04-17T20:34:30.088167Z',
    requiresTranslation: false,
  }));
}

function listOf(event: EventSpec, seed: number): readonly (readonly [label: string, slug: string])[] {
  if (event.negRiskId !== undefined) return CENTRAL_BANK;
  if (event.slug.startsWith('btc-updown')) return ROLLING;
  return TAG_LISTS[hashWord(seed, 62, event.no) % TAG_LISTS.length] ?? [];
}
