import { describe, expect, it } from 'vitest';
import { PortTakenError, startExchange } from '../../../sim/exchange.ts';
import type { GammaPage } from './http-exchange.ts';

describe('startExchange', () => {
  it('runs in real time, and pauses', async () => {
    const exchange = await startExchange({ seed: 2, historyHours: 0.1, markets: 12 });
    try {
      const wall = Math.floor(Date.now() / 1000);
      expect(exchange.second()).toBeGreaterThanOrEqual(wall);
      exchange.pause();
      const { second } = exchange.state();
      exchange.step(50);
      expect(exchange.second()).toBe(second + 50);
      exchange.resume();
      expect(exchange.second()).toBeGreaterThanOrEqual(second + 50);
    } finally {
      await exchange.close();
    }
  });

  it('reports a taken port, and closes with a delayed answer in flight', async () => {
    const exchange = await startExchange({ historyHours: 0.01, markets: 4, paused: true });
    await expect(startExchange({ port: exchange.port, historyHours: 0.01, markets: 4 })).rejects.toBeInstanceOf(
      PortTakenError,
    );
    exchange.addFault({ host: 'data', kind: 'latency', latencyMs: 600_000 });
    const pending = fetch(`${exchange.dataUrl}/v2/trades`).catch((error: unknown) => error);
    while (exchange.requests().length === 0) await new Promise((resolve) => setImmediate(resolve));
    await exchange.close();
    expect(await pending).toBeInstanceOf(Error);
  });

  it('delays an answer by the option, while it answers its controls', async () => {
    const exchange = await startExchange({ historyHours: 0.01, markets: 4, paused: true, kalshiPageDelayMs: 600_000 });
    const pending = fetch(`${exchange.kalshiUrl}/markets`).catch((error: unknown) => error);
    while (exchange.requests().length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect((await fetch(`${exchange.kalshiUrl}/series`)).status).toBe(200);
    expect(exchange.requests().map(({ status }) => status)).toEqual([undefined, 200]);
    await exchange.close();
    expect(await pending).toBeInstanceOf(Error);
  });

  it('answers 429 above a documented rate, and reports the status and length of each answer', async () => {
    const exchange = await startExchange({ historyHours: 0.01, markets: 4, paused: true, enforcesRates: true });
    try {
      for (let request = 0; request < 31; request += 1) await fetch(`${exchange.jupiterUrl}/price/v3?ids=a`);
      const requests = exchange.requests();
      expect(requests.map(({ status }) => status === 429)).toEqual([...Array(30).fill(false), true]);
      expect(requests[0]?.bytes).toBeGreaterThan(0);
    } finally {
      await exchange.close();
    }
  });

  it('lists a large catalog page by page', async () => {
    const exchange = await startExchange({ historyHours: 0.05, markets: 20_000, liveMarkets: 10, paused: true });
    try {
      const seen = new Set<string>();
      let cursor: string | undefined;
      do {
        const after = cursor === undefined ? '' : `&after_cursor=${cursor}`;
        const response = await fetch(
          `${exchange.gammaUrl}/markets/keyset?limit=100&order=volume24hr&ascending=false${after}`,
        );
        const page = (await response.json()) as GammaPage;
        for (const market of page.markets) seen.add(market.id);
        cursor = page.next_cursor;
      } while (cursor !== undefined);
      const open = exchange.state().markets.filter((market) => market.phase !== 'resolved');
      expect(seen.size).toBe(open.length);
      expect(seen.size).toBeGreaterThan(19_900);
    } finally {
      await exchange.close();
    }
  });
});
