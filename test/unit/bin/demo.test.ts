import { describe, expect, it } from 'vitest';
import { bannerText, FIRST_CALLS } from '../../../bin/demo/banner.ts';
import { findFirstPrice } from '../../../bin/demo/first-price.ts';
import { snippetsOf } from '../../support/markdown.ts';

const MARKET = { market_id: '0xa', title: 'A' };

/** A search whose looks are a second apart, at an API that behaves as `answers` says, one answer per look. */
function search(answers: readonly ('refuses' | 'is empty' | 'has no price' | 'has a price')[]) {
  const said: string[] = [];
  let look = 0;
  const found = findFirstPrice({
    api: {
      async markets() {
        if (answers[look] === 'refuses') throw new Error('fetch failed');
        return answers[look] === 'is empty' ? [] : [MARKET];
      },
      async price() {
        return answers[look] === 'has a price' ? { outcomes: [{ outcome_id: '17', price: 0.5 }] } : null;
      },
    },
    signal: new AbortController().signal,
    say: (text) => said.push(text),
    nowMs: () => look * 1_000,
    pause: async () => {
      look += 1;
    },
  });
  return { found, said };
}

const times = <T>(count: number, answer: T) => Array.from({ length: count }, () => answer);

describe('the demo', () => {
  it('waits for minutes until a market has a price, and reports its progress', async () => {
    const { found, said } = search([
      ...times(300, 'refuses' as const),
      ...times(12, 'is empty' as const),
      'has no price',
      'has a price',
    ]);
    expect(await found).toEqual({ marketId: '0xa', outcomeId: '17' });
    expect(said.slice(0, 2)).toEqual([
      'demo: waiting for the API (0 s)',
      'demo: waiting for the API (10 s): fetch failed',
    ]);
    expect(said.slice(-3)).toEqual([
      'demo: waiting for the first markets of the exchange (300 s)',
      'demo: waiting for the first markets of the exchange (310 s)',
      'demo: waiting for the first price (312 s)',
    ]);
    expect(said).toHaveLength(33);
  });

  it('prints the calls of docs/start.md with its own settings', () => {
    const text = bannerText({
      apiUrl: 'http://127.0.0.1:8080',
      apiKey: 'ow_demo_1',
      opsPassword: 'p',
      dataDir: '.data/demo',
      listKeys: 'oddswire keys list',
      marketId: '0xa b',
      outcomeId: '17',
    });
    const [documented] = snippetsOf('docs/start.md').filter((snippet) => snippet.text.includes('curl'));
    const [settings, calls] = [
      documented?.text.split('\n').filter((line) => /^[A-Z]+=/.test(line)),
      documented?.text.split('\n').filter((line) => line !== '' && !/^[A-Z]+=/.test(line)),
    ];
    expect(calls).toEqual(FIRST_CALLS);
    for (const line of FIRST_CALLS) expect(text).toContain(`  ${line}\n`);
    const names = (settings ?? []).map((line) => line.split('=')[0]);
    expect(names).toEqual(['API', 'KEY', 'MARKET', 'OUTCOME']);
    for (const name of names) expect(text).toMatch(new RegExp(`^  ${name}=\\S+$`, 'm'));
    expect(text).toContain('  MARKET=0xa%20b\n');
  });
});
