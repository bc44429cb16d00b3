import { describe, expect, it } from 'vitest';
import { parseMarkets } from '../../../../src/venues/polymarket/parse-market.ts';

const NOW = Date.UTC(2026, 9, 1);
const tag = (slug: string, label = slug) => ({ id: '1', label, slug });

function labels(more: object) {
  const market = { conditionId: '0x1', question: 'Q', closed: false, outcomes: ['Yes', 'No'], ...more };
  const [record] = parseMarkets([market], NOW).records;
  const { category, tags, isUntagged } = record ?? {};
  return { category, tags, isUntagged };
}

describe('the category of a market', () => {
  it.each<[string, string[], string | undefined]>([
    ['a person and "Meta" come first', ['meta', 'jerome-powell', 'fed', 'politics', 'economy'], 'Economy'],
    ['politics is the only top-level tag', ['donald-trump', 'politics', 'trump-cabinet'], 'Politics'],
    ['a stray politics tag accompanies another', ['politics', 'pop-culture', 'all', 'gta-vi'], 'Culture'],
    ['an election has politics and world too', ['world-elections', 'politics', 'elections', 'world'], 'Elections'],
    ['a war has world and politics too', ['world', 'politics', 'geopolitics', 'iran'], 'Geopolitics'],
    ['a price of a coin has finance too', ['finance', 'up-or-down', 'crypto-prices', 'crypto'], 'Crypto'],
    ['an esport has sports too', ['sports', 'counter-strike-2', 'esports', 'games'], 'Esports'],
    ['a market is about words', ['politics', 'trump', 'mention-markets'], 'Mentions'],
    ['AI stands alone', ['openai', 'ai'], 'Tech'],
    ['no tag is top-level', ['elon-musk', 'meta'], undefined],
    ['there is no tag', [], undefined],
  ])('is the top-level tag of the highest rank when %s', (_, slugs, category) => {
    expect(labels({ tags: slugs.map((slug) => tag(slug)) }).category).toBe(category);
    expect(labels({ tags: slugs.toReversed().map((slug) => tag(slug)) }).category).toBe(category);
  });

  it('comes from the tags of the event too, and from labels without slugs', () => {
    expect(labels({ events: [{ id: '1', tags: [tag('weather')] }] }).category).toBe('Weather');
    expect(labels({ tags: ['Donald Trump', 'Pop Culture'] }).category).toBe('Culture');
    expect(labels({ tags: [{ label: 'Crypto' }] }).category).toBe('Crypto');
  });

  it('is the category field of the market or its event when no tag gives one', () => {
    expect(labels({ category: 'US-current-affairs', tags: [tag('meta')] }).category).toBe('US-current-affairs');
    expect(labels({ events: [{ id: '1', category: 'NFTs' }], tags: [] }).category).toBe('NFTs');
    expect(labels({ category: 'US-current-affairs', tags: [tag('politics')] }).category).toBe('Politics');
  });
});

describe('the tags of a market', () => {
  it('are slugs, each once, without tags for display and rewards', () => {
    const own = ['jerome-powell', 'hide-from-new', 'earn-4', 'economy', 'all', 'rewards-50-4pt5-100', 'recurring'];
    const events = [{ id: '1', tags: [tag('economy'), tag('fed')] }];
    const { tags } = labels({ tags: own.map((slug) => tag(slug)), events });
    expect(tags).toEqual(['jerome-powell', 'economy', 'recurring', 'fed']);
  });

  it.each<[string, object, true | undefined]>([
    ['has no list', {}, true],
    ['has an event without a list', { events: [{ id: '1' }] }, true],
    ['has null', { tags: null }, true],
    ['has something else', { tags: 'politics' }, true],
    ['has an empty list', { tags: [] }, undefined],
    ['has a list at its event', { events: [{ id: '1', tags: [] }] }, undefined],
  ])('are unknown only when the answer %s', (_, more, isUntagged) => {
    expect(labels(more)).toMatchObject({ tags: [], isUntagged });
  });
});
