import { describe, expect, it } from 'vitest';
import { VENUE_NAMES } from '../../../src/domain/markets/venue.ts';
import { createAdapters, createTokenAdapters, createWalletAdapters } from '../../../src/venues/registry.ts';

const host = 'http://127.0.0.1:9';
const urls = {
  polymarket: { gamma: host, clob: host, data: host },
  kalshi: host,
  manifold: host,
  limitless: { api: host },
  solana: { jupiter: host },
};

describe('createAdapters', () => {
  it('creates the requested adapters', async () => {
    const adapters = createAdapters({ venues: ['manifold', 'polymarket'], urls });
    expect([...adapters.keys()]).toEqual(['manifold', 'polymarket']);
    expect(adapters.get('polymarket')).toMatchObject({ venue: 'polymarket', currency: 'USD' });
    expect(adapters.get('manifold')).toMatchObject({
      venue: 'manifold',
      currency: 'MANA',
      capabilities: { books: false },
    });
    for (const adapter of adapters.values()) await adapter.close();
  });

  it('creates every venue with markets', async () => {
    const adapters = createAdapters({ venues: VENUE_NAMES, urls });
    for (const [venue, adapter] of adapters) {
      expect(adapter.venue).toBe(venue);
      await adapter.close();
    }
    expect([...adapters.keys()]).toEqual(['polymarket', 'kalshi', 'manifold', 'limitless']);
  });

  it('creates a token adapter for Solana, and a wallet adapter when a node is configured', async () => {
    const tokens = createTokenAdapters({ venues: VENUE_NAMES, urls });
    expect([...tokens.keys()]).toEqual(['solana']);
    const without = createWalletAdapters({ venues: VENUE_NAMES, urls });
    expect([...without.keys()]).not.toContain('solana');
    const wallets = createWalletAdapters({
      venues: VENUE_NAMES,
      urls: { ...urls, solana: { jupiter: host, rpc: host } },
    });
    expect([...wallets.keys()]).toContain('solana');
    for (const adapter of [...tokens.values(), ...without.values(), ...wallets.values()]) await adapter.close();
  });

  it.each(['intrade', 'constructor', '__proto__'])('names the known venues when %s is requested', (venue) => {
    expect(() => createAdapters({ venues: ['polymarket', venue], urls })).toThrow(/known: polymarket/);
  });
});

describe('the names of venues', () => {
  it('are no segment of another route', () => {
    // `/v1/{venue}/…` would hide or replace these routes.
    const segments = ['all', 'venue', 'venues', 'stream', 'events', 'webhooks', 'alerts', 'wallets', 'keys'];
    expect(VENUE_NAMES.filter((name) => segments.includes(name))).toEqual([]);
  });
});
