import { describe, expect, it } from 'vitest';
import { createAdapters } from '../../../src/venues/registry.ts';

const host = 'http://127.0.0.1:9';
const urls = { polymarket: { gamma: host, clob: host, data: host } };

describe('createAdapters', () => {
  it('makes the adapters that are asked for', async () => {
    const adapters = createAdapters({ venues: ['polymarket'], urls });
    expect([...adapters.keys()]).toEqual(['polymarket']);
    expect(adapters.get('polymarket')).toMatchObject({ venue: 'polymarket', currency: 'USD' });
    for (const adapter of adapters.values()) await adapter.close();
  });

  it.each(['intrade', 'constructor', '__proto__'])('names the known venues when asked for %s', (venue) => {
    expect(() => createAdapters({ venues: ['polymarket', venue], urls })).toThrow(/known: polymarket/);
  });
});
